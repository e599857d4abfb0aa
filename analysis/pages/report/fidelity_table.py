"""Table of the measured behaviour and configuration of each WAN link and direction (docs/fidelity.md).

A row is a period of one direction's configuration. Its last column gives the reason if it is not proven, with
the cause if the run's data show it. Columns that no row of a run needs are left out.
"""

from collections.abc import Mapping

from analysis.pages.report.formatting import EN_DASH, number, percent, scaled, with_unit
from analysis.pages.report.run_reader import AnalysedRun, Row
from analysis.pages.report.tables import (
    Column,
    PageTable,
    TableCell,
    figure,
    label,
    milliseconds,
    quantity,
    table,
    text_cell,
)
from experiments.planned.plan import LinkPlan


def fidelity_table(record: AnalysedRun) -> PageTable:
    """Return the measured behaviour and configuration of each direction of each WAN link."""
    links = {link.name: link for link in record.wan_links}
    order = {name: number for number, name in enumerate(links)}
    rows = [
        {**row, "way": _direction(row, links)}
        for row in sorted(record.fidelity, key=lambda row: order.get(row["link"], len(order)))
    ]
    return table("fidelity", _COLUMNS, rows)


def _direction(row: Row, links: Mapping[str, LinkPlan]) -> str:
    """Return `r0→r1`, or `backup r0→r1` for a link with a name of its own."""
    link = links[row["link"]]
    ends = f"{link.a}→{link.b}" if row["direction"] == "forward" else f"{link.b}→{link.a}"
    return f"{link.given_name} {ends} {row.get('selected') or ''}".strip()


def _period(row: Row) -> TableCell:
    """Return the period of this configuration, and the state if it was not up."""
    state = row.get("state") or "up"
    since, until = row.get("from_s"), row.get("to_s")
    when = (
        "whole run"
        if since is None and until is None
        else f"{since or 0:.1f}{EN_DASH}{'end' if until is None else f'{until:.1f}'}"
    )
    return TableCell(when, since or 0.0, below="" if state == "up" else state)


def _verdict(row: Row) -> TableCell:
    return text_cell(row["verdict"], {"proven": "good", "violated": "bad"}.get(row["verdict"], ""))


def _reason(row: Row) -> TableCell:
    return text_cell("; ".join(filter(None, (row.get("reason"), row.get("cause")))))


def _configured_delay(row: Row) -> TableCell:
    jitter_ms = row.get("configured_jitter_ms")
    delay = with_unit(row["configured_delay_ms"], "ms")
    return TableCell(
        delay, row["configured_delay_ms"], below=f"± {with_unit(jitter_ms, 'ms')}" if jitter_ms else ""
    )


def _excess_delay(row: Row) -> TableCell:
    p50_ms, p99_ms = row.get("excess_p50_ms"), row.get("excess_p99_ms")
    return figure(f"{p50_ms or 0:.2f} / {milliseconds(p99_ms)}", p99_ms)


def _share(row: Row, name: str) -> TableCell:
    """Return a share of packets with its confidence interval, if it is not 0 or was configured."""
    part, low, high = (row.get(f"{name}{end}") for end in ("", "_low", "_high"))
    below = f"{percent(low)}{EN_DASH}{percent(high)}" if high is not None and _is_used(row, name) else ""
    return TableCell(EN_DASH if part is None else percent(part), part, below=below)


def _is_used(row: Row, name: str) -> bool:
    return bool(row.get(name) or row.get(f"configured_{name}"))


def _share_columns(name: str, measured: str, help_text: str) -> tuple[Column, Column]:
    """Return the columns of a configured and of the measured share, for runs that have any."""

    def is_needed(row: Row) -> bool:
        return _is_used(row, name)

    return (
        quantity(f"Configured {name}", f"configured_{name}", percent, needed=is_needed),
        Column(
            measured, lambda row: _share(row, name), numeric=True, needed=is_needed,
            help=f"{help_text}; below, its confidence interval",
        ),
    )  # fmt: skip


def _lost(row: Row) -> TableCell:
    counts = [(row.get(f"lost_{what}") or 0, what) for what in ("chance", "queue", "cut", "size")]
    text = ", ".join(f"{number(count)} {what}" for count, what in counts if count) or "0"
    return TableCell(text, sum(count for count, _ in counts))


def _rate(row: Row) -> TableCell:
    bits_per_s = row["configured_rate_bits_per_s"]
    return (
        TableCell("no limit", None) if bits_per_s is None else figure(scaled(bits_per_s, "bit/s"), bits_per_s)
    )


_COLUMNS = (
    label("Direction", "way"),
    Column("When", _period, numeric=True, help="seconds since start; a row for each configuration"),
    Column(
        "State", _verdict, help="proven: its packets show the configured behaviour; violated: they show"
        " another; unproven: they show neither",
    ),
    Column("Configured delay", _configured_delay, numeric=True, help="one-way delay, and its jitter"),
    quantity(
        "p50", "delay_p50_ms", milliseconds,
        "median one-way delay, from packets seen at both ends of the link",
    ),
    quantity("p99", "delay_p99_ms", milliseconds, "99th percentile of the one-way delay"),
    Column(
        "Excess", _excess_delay, numeric=True,
        help="median and 99th percentile of packets' delay beyond that of the configured link, which is"
        " computed for just these packets: rate, queue, drops and jitter",
    ),
    quantity(
        "Bound", "error_ms", lambda bound_ms: f"±{milliseconds(bound_ms)}",
        "error bound of delays that two clocks measured",
        needed=lambda row: row.get("error_ms") is not None,
    ),
    quantity("Configured loss", "configured_loss", percent),
    Column(
        "Loss", lambda row: _share(row, "loss"), numeric=True,
        help="random loss, among packets that only chance could lose; below, its confidence interval",
    ),
    Column(
        "Lost", _lost, numeric=True,
        help="packets that did not arrive: by chance, at the full queue, by a cut",
    ),
    *_share_columns("duplicate", "Duplicates", "packets that came twice, among those that came"),
    *_share_columns("corrupt", "Corrupted", "packets that came with a wrong checksum"),
    Column("Configured rate", _rate, numeric=True),
    quantity(
        "Peak rate", "rate_bits_per_s", lambda bits_per_s: scaled(bits_per_s, "bit/s"),
        "rate in the busiest second",
    ),
    quantity("Packets", "packets", number, "seen on the sending side and uniquely identified"),
    Column(
        "Why", _reason, help="why it is not proven, and the cause if the run's data show it",
        needed=lambda row: row["verdict"] != "proven",
    ),
)  # fmt: skip
