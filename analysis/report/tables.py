"""Tables as plain data, for one macro of the page to draw: columns, and cells with their text and what they
sort by.

The builders here are those that only lay out what run.json and summary.json say; recovery and backlog have
modules of their own.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.pcap.compressed import capture_name
from analysis.report.bands import fault_label
from analysis.report.formatting import (
    EN_DASH,
    NOT_MEASURED,
    number,
    percent,
    precise_seconds,
    scaled,
    seconds,
    with_unit,
)
from analysis.report.reading import Row, RunRecord

PROCESSES_SHOWN = 500
UNPROVEN_SHOWN = 2


@dataclass(frozen=True, slots=True)
class Cell:
    """`sort` orders the column; None (not measured) always goes last. `status` is "", "good" or "bad"."""

    text: str
    sort: float | str | None = None
    status: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading, whether it is right-aligned, and a longer explanation for who asks."""

    title: str
    numeric: bool = False
    help: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """What the page draws as one sortable table."""

    key: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def words(text: Any, status: str = "") -> Cell:
    """A cell of text, sorted by itself."""
    shown = "" if text is None else str(text)
    return Cell(shown, shown.lower(), status)


def figure(text: str, value: float | None, status: str = "") -> Cell:
    """A cell with a quantity, sorted by its value; a dash where it was not measured."""
    return Cell(EN_DASH if value is None else text, value, status)


def table(key: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> Table:
    """A table; every row must have a cell for every column."""
    made = Table(key, tuple(columns), tuple(tuple(row) for row in rows))
    assert all(len(row) == len(made.columns) for row in made.rows), key  # noqa: S101  (our own bug)
    return made


def expectations_table(record: RunRecord) -> Table:
    """Every expectation with its value; and, if some rest on links that are unproven, on which."""
    expectations = record.summary.get("expectations") or ()
    shaky = any(e.get("unproven") for e in expectations)
    rows = (
        (
            words(e["text"]),
            figure(plain_text(e.get("value")), e.get("value")),
            words("held" if e.get("held") else "did not hold", "good" if e.get("held") else "bad"),
            *((words(shortened(e.get("unproven") or ())),) * shaky),
        )
        for e in expectations
    )
    rests_on = Column("Rests on", help="links of which no packet shows that they did as configured")
    columns = (Column("Expectation"), Column("Value", numeric=True), Column("Held"), *((rests_on,) * shaky))
    return table("expectations", columns, rows)


def shortened(texts: Sequence[str]) -> str:
    """The first of some texts, and how many more there are."""
    more = f"; and {len(texts) - UNPROVEN_SHOWN} more" if len(texts) > UNPROVEN_SHOWN else ""
    return "; ".join(texts[:UNPROVEN_SHOWN]) + more


def fidelity_table(record: RunRecord) -> Table:
    """What each direction of each WAN link did, against what was configured."""
    ends = {link["name"]: (link["a"], link["b"]) for link in record.wan_links}
    order = {name: number for number, name in enumerate(ends)}

    def way(row: Row) -> str:
        a, b = ends.get(row["link"], (row["link"], ""))
        return f"{a}→{b}" if row["direction"] == "forward" else f"{b}→{a}"

    several_clocks = any(row.get("bar_ms") is not None for row in record.fidelity)
    columns = (
        Column("Direction"),
        Column("When", True, "seconds since start; a link has a line for each of its configurations"),
        Column(
            "Verdict",
            help="proven: its packets show that it did as configured; violated: that it did not; unproven:"
            " they cannot tell",
        ),
        Column("Delay asked", True, "configured one-way delay, and its jitter"),
        Column("p50", True, "median one-way delay, from packets seen at both ends of the link"),
        Column("p99", True, "99th percentile of the one-way delay"),
        Column(
            "Beyond",
            True,
            "median and 99th percentile of what packets took beyond what the configured link would have taken"
            " with just these packets: rate, queue, drops and jitter computed",
        ),
        *(
            (Column("Bar", True, "by how much delays may be wrong: two clocks measured them"),)
            * several_clocks
        ),
        Column("Loss asked", True),
        Column(
            "Loss",
            True,
            "by chance, of what chance alone could lose; in brackets, what it may really be",
        ),
        Column("Lost", True, "by chance, at the full queue, by a cut"),
        Column("Rate asked", True),
        Column("Peak rate", True, "what crossed in the busiest second"),
        Column("Packets", True, "seen on the sending side, each told from all others"),
    )
    rows = (
        (
            words(way(row)),
            figure(_period(row), row.get("from_s") or 0.0),
            _state(row),
            figure(_asked(row), row["configured_delay_ms"]),
            figure(_milliseconds(row["delay_p50_ms"]), row["delay_p50_ms"]),
            figure(_milliseconds(row["delay_p99_ms"]), row["delay_p99_ms"]),
            figure(_beyond(row), row.get("excess_p99_ms")),
            *(_bar(row) if several_clocks else ()),
            figure(percent(row["configured_loss"]), row["configured_loss"]),
            figure(_loss(row), row["loss"]),
            figure(_lost(row), sum(_lost_counts(row))),
            _rate(row["configured_rate_bits_per_s"]),
            figure(scaled(row["rate_bits_per_s"], "bit/s"), row["rate_bits_per_s"]),
            figure(number(row["packets"]), row["packets"]),
        )
        for row in sorted(record.fidelity, key=lambda row: order.get(row["link"], len(order)))
    )
    return table("fidelity", columns, rows)


def _state(row: Row) -> Cell:
    """What a period's packets show. Tables of earlier versions only know whether it was valid."""
    state = row.get("verdict") or ("proven" if row["valid"] else "violated")
    if state == "proven":
        return words(state, "good")
    why = "; ".join(filter(None, (row.get("reason"), row.get("cause"))))
    return words(f"{state}: {why}" if why else state, "bad" if state == "violated" else "")


def _asked(row: Row) -> str:
    jitter_ms = row.get("configured_jitter_ms")
    delay = with_unit(row["configured_delay_ms"], "ms")
    return f"{delay} ± {with_unit(jitter_ms, 'ms')}" if jitter_ms else delay


def _beyond(row: Row) -> str:
    return f"{_milliseconds(row.get('excess_p50_ms'))} / {_milliseconds(row.get('excess_p99_ms'))}"


def _loss(row: Row) -> str:
    """With its confidence interval, where something was lost or asked to be."""
    if row.get("loss_high") is None or not (row["loss"] or row["configured_loss"]):
        return percent(row["loss"])
    return f"{percent(row['loss'])} ({percent(row['loss_low'])}{EN_DASH}{percent(row['loss_high'])})"


def _lost_counts(row: Row) -> tuple[int, int, int]:
    chance, queue, cut = (row.get(f"lost_{what}") or 0 for what in ("chance", "queue", "cut"))
    return chance, queue, cut


def _lost(row: Row) -> str:
    counts = zip(_lost_counts(row), ("by chance", "queue", "cut"), strict=True)
    return ", ".join(f"{number(count)} {what}" for count, what in counts if count) or "0"


def _bar(row: Row) -> tuple[Cell]:
    bar_ms = row.get("bar_ms")
    return (figure(f"±{_milliseconds(bar_ms)}", bar_ms),)


def faults_table(record: RunRecord) -> Table:
    """When each fault was asked for and when it held."""
    rows = (
        (
            words(fault["name"]),
            words(fault_label(fault["kind"], fault["target"])),
            figure(seconds(fault.get("requested_s")), fault.get("requested_s")),
            figure(precise_seconds(fault.get("applied_s")), fault.get("applied_s")),
        )
        for fault in record.summary.get("faults") or ()
    )
    columns = (Column("Fault"), Column("What"), Column("Asked for", True), Column("Took hold", True))
    return table("faults", columns, rows)


def chains_table(record: RunRecord) -> Table:
    """Every configuration of the regions' chains."""
    rows = (
        (
            words(row["region"]),
            figure(str(row["number"]), row["number"]),
            figure(precise_seconds(row["at_s"]), row["at_s"]),
            words(" → ".join(row["chain"])),
            words(row["joining"]),
        )
        for row in record.chains
    )
    columns = (
        Column("Region"),
        Column("Configuration", True),
        Column("Decided", True, "seconds since start"),
        Column("Chain", help="from head to tail"),
        Column("Joining", help="beyond the tail, catching up"),
    )
    return table("chains", columns, rows)


def processes_table(record: RunRecord) -> Table:
    """Node processes and how they ended; those that ended unexpectedly first, and not thousands of them."""
    processes = sorted(
        record.run.get("processes") or (), key=lambda p: bool((p.get("exit") or {}).get("expected"))
    )
    rows = (
        (
            words(p["name"]),
            words(p["host"]),
            figure(str(p.get("pid") or ""), p.get("pid")),
            _exit_cell(p.get("exit")),
        )
        for p in processes[:PROCESSES_SHOWN]
    )
    return table("processes", (Column("Process"), Column("Host"), Column("PID", True), Column("Ended")), rows)


def captures_table(record: RunRecord) -> Table:
    """Every capture file, its packets, what the kernel dropped, and what of it could not be used."""
    left_out = {str(row["capture"]): _left_out(row) for row in record.captures}
    rows = (
        (
            words(c["file"]),
            words(c.get("host") or f"link {c.get('link')}, side of {c.get('side')}"),
            figure(number(c.get("packets")), c.get("packets")),
            figure(
                number(c.get("kernel_drops")), c.get("kernel_drops"), "bad" if c.get("kernel_drops") else ""
            ),
            words(left_out.get(capture_name(Path(c["file"])), "")),
        )
        for c in record.run.get("captures") or ()
    )
    columns = (
        Column("File"),
        Column("Where"),
        Column("Packets", True),
        Column("Dropped by the kernel", True),
        Column("Not used"),
    )
    return table("captures", columns, rows)


def _left_out(capture: Row) -> str:
    """What of a capture could not be used: counts by name, and where it is damaged."""
    counts = [f"{number(one['count'])} {one['what']}" for one in capture.get("unused") or ()]
    return "; ".join([*counts, *filter(None, [capture.get("problem")])])


def probes_table(record: RunRecord) -> Table:
    """Round trips of each pair before the nodes started and after they stopped, median."""
    rows = []
    for probe in record.run.get("probes") or ():
        times = sorted(probe.get("rtt_us") or ())
        median_ms = times[len(times) // 2] / 1000 if times else None
        rows.append(
            (
                words(f"{probe['from']}{EN_DASH}{probe['to']}"),
                words(probe["when"]),
                figure(_milliseconds(median_ms), median_ms),
                figure(number(len(times)), len(times)),
            )
        )
    columns = (Column("Pair"), Column("When"), Column("Round trip, median", True), Column("Probes", True))
    return table("probes", columns, rows)


def _exit_cell(end: Row | None) -> Cell:
    if end is None:
        return words("no exit was seen", "bad")
    how = f"signal {end['signal']}" if end.get("signal") is not None else f"code {end.get('code')}"
    return words(how, "") if end.get("expected") else words(f"{how}, unexpected", "bad")


def _period(row: Row) -> str:
    """When this configuration held, and the state if it was not up."""
    state = row.get("state") or "up"
    since, until = row.get("from_s"), row.get("to_s")
    when = (
        "whole run"
        if since is None and until is None
        else f"{since or 0:.1f}{EN_DASH}{'end' if until is None else f'{until:.1f}'}"
    )
    return when if state == "up" else f"{when}, {state}"


def _rate(bits_per_s: float | None) -> Cell:
    return Cell("no limit", None) if bits_per_s is None else figure(scaled(bits_per_s, "bit/s"), bits_per_s)


def _milliseconds(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.2f}\u00a0ms"


def plain_text(value: Any) -> str:
    """A value of summary.json as an expectation compares it."""
    return (
        number(value) if isinstance(value, int | float) and not isinstance(value, bool) else json.dumps(value)
    )
