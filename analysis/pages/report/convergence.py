"""Convergence by RFC 6412 and 6414 of each fault and stream, and of the whole run (docs/recovery.md).

Two methods determine when a stream has converged: by rates and by losses. If they differ by more than two
sampling intervals, the table shows for how many streams, with an explanation below.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.pages.report.charts.bands import fault_label
from analysis.pages.report.formatting import count_of, number, precise_seconds, seconds
from analysis.pages.report.run_reader import AnalysedRun, Row
from analysis.pages.report.tables import ROWS_MAX, PageTable, label, quantity, table
from analysis.timelines.links.tcp_outages import AT_ONCE_S
from analysis.timelines.recovering.convergence import SETTLED_NS
from analysis.timelines.recovering.recovery_table import APART_S

_FIRST = quantity(
    "First stream",
    "first_route_s",
    seconds,
    "until the first affected stream delivers an event that was published"
    " after the fault; RFC 6412: first route convergence time",
)
_ROUTE = quantity(
    "Slowest stream",
    "switch_s",
    seconds,
    "the same for the last affected stream, at its slowest client; RFC 6412:"
    " route-specific convergence, to the first packet",
)
RATES = quantity(
    "Full, by rates",
    "rate_derived_s",
    seconds,
    "until every affected stream carries at least 95 % of its load in time"
    " again, for 2 s; RFC 6412: full convergence time, rate-derived method, with a sampling interval of"
    " 200 ms and a sustained convergence validation time of 2 s",
)
LOSSES = quantity(
    "By losses",
    "loss_derived_s",
    seconds,
    "time in which the load produces the late or lost events, for the slowest"
    " stream; RFC 6412: loss-derived convergence time. Late events take longer than the forwarding"
    " delay threshold: 20 % above what the path allows",
)
SILENCE = quantity(
    "Longest silence",
    "connectivity_lost_s",
    seconds,
    "longest time in which some client got no event of a stream; RFC 6412: route loss of connectivity period",
)
IMPAIRED = quantity(
    "Impaired", "impaired", number, "events that a client got late or never; RFC 6414: impaired packets"
)


@dataclass(frozen=True, slots=True)
class Convergence:
    """Contents of the page's section on convergence."""

    words: str  # how the run stabilised
    faults: PageTable
    connections: PageTable  # what TCP did across links that came back


def convergence(record: AnalysedRun) -> Convergence | None:
    """Return the section; None if the run has no faults with known recovery."""
    known = record.summary.get("recovery") or {}
    faults = [fault for fault in record.summary.get("faults") or () if fault["name"] in known]
    if not faults:
        return None
    by_fault = {
        fault["name"]: [row for row in record.recovery if row["fault"] == fault["name"] and row["affected"]]
        for fault in faults
    }
    figures = record.summary.get("convergence") or {}
    return Convergence(
        words=f"{_stabilisation(figures)} {_tcp_text(figures, record.tcp_outages)}".strip(),
        faults=_faults_table(faults, known, by_fault),
        connections=_connections_table(record.tcp_outages),
    )


def _after(missed: int, wait: str) -> str:
    if not missed:
        return f"No event published after it took longer than {wait}."
    were = f"{count_of(missed, 'delivery')} of events published after it never arrived"
    return f"{were}; others took at most {wait}."


def _stabilisation(figures: Row) -> str:
    """Return how the run stabilised after its last change, as text."""
    if figures.get("stalled") is None:
        return ""
    since = f"After the last change, at {seconds(figures.get('last_change_s'))},"
    full, half, beyond, wait = (
        seconds(figures.get(name)) for name in ("full_s", "median_s", "beyond_way_s", "wait_max_s")
    )
    count = figures.get("missed") or 0
    if figures["stalled"]:
        sentences = [f"{since} {count_of(figures['stalled'], 'stream')} never reached a connected client."]
    else:
        sentences = [
            f"{since} every stream flowed again at every client within {full} (median {half}), at most"
            f" {beyond} beyond its path's delay. " + _after(count, wait)
        ]
    if figures.get("connected") is False:
        sentences.append("The links that were up in both directions did not connect all regions.")
    if (late := figures.get("late_switches")) is not None:
        many = (
            f"Servers changed their source {count_of(late, 'time')}"
            if late
            else "No server changed its source"
        )
        sentences.append(f"{many} from {SETTLED_NS / 1e9:.0f}\u00a0s after it.")
    return " ".join(sentences)


def _tcp_text(figures: Row, connections: Sequence[Row]) -> str:
    """Return how much of the silence after the last change TCP's backoff explains, as text."""
    retry_s, full_s = figures.get("tcp_retry_s"), figures.get("full_s")
    if retry_s is None:
        return ""
    last_s = figures.get("last_change_s") or 0.0
    over = [row for row in connections if abs(row["to_s"] - last_s) < AT_ONCE_S]
    last_try_s = max((row["last_try_s"] for row in over if row["last_try_s"] is not None), default=last_s)
    before = f" had tried last {seconds(last_s - last_try_s)} before the link was back and"
    # Streams may flow by another way before TCP tries again over this one.
    share = (
        f": {retry_s / full_s:.0%} of the time until every stream flowed" if retry_s <= (full_s or 0) else ""
    )
    return f"TCP{before} tried again {seconds(retry_s)} after it{share}."


def _connections_table(connections: Sequence[Row]) -> PageTable:
    """Return a row for each connection across a link that came back, the latest to try again first."""
    columns = (
        label("Link", "link"),
        quantity("Back", "to_s", precise_seconds, "when the link was up again, since start"),
        label("Client", "client"),
        label("Server", lambda row: f"{row['server']}:{row['port']}"),
        label(
            "Open before",
            lambda row: "yes" if row["open"] else "no",
            "whether it was open when the link failed",
        ),
        quantity("Tries", "tries", number, "segments with data, SYN or FIN sent while the link was down"),
        quantity("Last try", lambda row: _since(row, "last_try_s"), _signed, "before the link was back"),
        quantity("Next try", lambda row: _since(row, "next_try_s"), _signed, "after the link was back"),
        quantity("Came through", lambda row: _since(row, "through_s"), _signed, "after the link was back"),
        label(
            "Ended", _ending, "by the first FIN or RST since the link failed, relative to when it was back"
        ),
    )
    ordered = sorted(connections, key=lambda row: (row["to_s"], -(_since(row, "next_try_s") or 0.0)))
    return table("connections", columns, ordered[:ROWS_MAX])


def _since(row: Row, name: str) -> float | None:
    """Return a time of a connection, since its link was back."""
    return None if row[name] is None else row[name] - row["to_s"]


def _ending(row: Row) -> str:
    if row["ended_s"] is None:
        return "no"
    return f"{_signed(row['ended_s'] - row['to_s'])}, {row['ended_how']} of {row['ended_by']}"


def _faults_table(faults: Sequence[Row], known: Row, by_fault: dict[str, list[Row]]) -> PageTable:
    """Return a row for each fault with its figures from summary.json."""
    columns = (
        label("Fault", lambda fault: fault_label(fault["kind"], fault["target"])),
        quantity(
            "Took effect",
            "applied_s",
            precise_seconds,
            "seconds since start; RFC 6412: convergence event instant",
        ),
        *(_FIRST, _ROUTE, RATES, LOSSES),
        label(
            "Methods",
            lambda fault: _methods(by_fault[fault["name"]]),
            "whether rates and losses agree for each stream, within two sampling intervals",
        ),
        *(SILENCE, IMPAIRED),
    )
    return table("convergence", columns, [{**known[fault["name"]], **fault} for fault in faults])


def _signed(time_s: float | None) -> str:
    return f"{'+' if time_s and time_s > 0 else ''}{seconds(time_s)}"


def _apart_s(row: Row) -> float | None:
    """Return the time by rates minus the time by losses."""
    rates_s, losses_s = row.get("rate_derived_s"), row.get("loss_derived_s")
    return None if rates_s is None or losses_s is None else rates_s - losses_s


def _methods(rows: Sequence[Row]) -> str:
    """Return for how many streams at clients the methods agree."""
    both = [each for row in rows if (each := _apart_s(row)) is not None]
    apart = [each for each in both if abs(each) > APART_S]
    if not both:
        return "not both measured"
    if not apart:
        return f"agree, {len(both)} of {len(rows)}" if len(both) < len(rows) else "agree"
    return f"{len(apart)} of {len(both)} apart, up to {seconds(max(map(abs, apart)))}"
