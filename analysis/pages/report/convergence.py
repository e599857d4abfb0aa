"""Convergence as RFC 6412 and 6414 measure it, for each fault and each of its streams, and how the whole run
came to rest (docs/recovery.md).

Two methods say when a stream has converged: from rates and from losses. Where they are further apart than two
sampling intervals, the table says of how many streams; why that is so stands below it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.pages.report.charts.bands import fault_label
from analysis.pages.report.formatting import count_of, number, precise_seconds, seconds
from analysis.pages.report.run_reader import AnalysedRun, Row
from analysis.pages.report.tables import Table, label, quantity, table
from analysis.timelines.recovering.convergence import SETTLED_NS
from analysis.timelines.recovering.recovery_table import APART_S

ROUTES_SHOWN = 400  # there may be thousands of clients

_FIRST = quantity(
    "First stream",
    "first_route_s",
    seconds,
    "until the first affected stream has brought an event that was published"
    " after the fault; RFC 6412: first route convergence time",
)
_ROUTE = quantity(
    "Slowest stream",
    "switch_s",
    seconds,
    "the same of the last affected stream, at its slowest client; RFC 6412:"
    " route-specific convergence, to the first packet",
)
_RATES = quantity(
    "Full, by rates",
    "rate_derived_s",
    seconds,
    "until every affected stream carries at least 95 % of its load in time"
    " again, for 2 s; RFC 6412: full convergence time, rate-derived method, with a sampling interval of"
    " 200 ms and a sustained convergence validation time of 2 s",
)
_LOSSES = quantity(
    "By losses",
    "loss_derived_s",
    seconds,
    "so long the load needs for the events that were late or lost, of the slowest"
    " stream; RFC 6412: loss-derived convergence time. Late is what takes longer than the forwarding"
    " delay threshold: 20 % above what the path allows",
)
_SILENCE = quantity(
    "Longest silence",
    "connectivity_lost_s",
    seconds,
    "in which some client got nothing of a stream; RFC 6412: route loss of connectivity period",
)
_IMPAIRED = quantity(
    "Impaired", "impaired", number, "events that a client got late or never; RFC 6414: impaired packets"
)


@dataclass(frozen=True, slots=True)
class Convergence:
    """What the page says of it."""

    words: str  # how the run came to rest
    faults: Table
    why_apart: tuple[str, ...]  # why the two methods disagree, where they do
    routes: Table


def convergence(record: AnalysedRun) -> Convergence | None:
    """None of a run without faults of which anything is known."""
    known = record.summary.get("recovery") or {}
    faults = [fault for fault in record.summary.get("faults") or () if fault["name"] in known]
    if not faults:
        return None
    by_fault = {
        fault["name"]: [row for row in record.recovery if row["fault"] == fault["name"] and row["affected"]]
        for fault in faults
    }
    rows = [row for mine in by_fault.values() for row in mine]
    return Convergence(
        words=_at_rest(record.summary.get("convergence") or {}),
        faults=_faults_table(faults, known, by_fault),
        why_apart=_why_apart(rows),
        routes=_routes_table(record, rows),
    )


def _after(missed: int, wait: str) -> str:
    if not missed:
        return f"No event published after it took longer than {wait}."
    were = f"{count_of(missed, 'delivery')} of events published after it never came"
    return f"{were}; what came took at most {wait}."


def _at_rest(figures: Row) -> str:
    """How the run came to rest after its last change."""
    if figures.get("stalled") is None:
        return ""
    since = f"After the last change, at {seconds(figures.get('last_change_s'))},"
    full, half, beyond, wait = (
        seconds(figures.get(name)) for name in ("full_s", "median_s", "beyond_way_s", "wait_max_s")
    )
    count = figures.get("missed") or 0
    if figures["stalled"]:
        told = [f"{since} {count_of(figures['stalled'], 'stream')} stayed away from a client that was there."]
    else:
        told = [
            f"{since} every stream flowed again at every client within {full} (median {half}), at most"
            f" {beyond} beyond its path's delay. " + _after(count, wait)
        ]
    if figures.get("connected") is False:
        told.append("Links that are up in both directions do not join all regions then.")
    if (late := figures.get("late_switches")) is not None:
        many = (
            f"Servers changed their source {count_of(late, 'time')}"
            if late
            else "No server changed its source"
        )
        told.append(f"{many} from {SETTLED_NS / 1e9:.0f}\u00a0s after it on.")
    return " ".join(told)


def _faults_table(faults: Sequence[Row], known: Row, by_fault: dict[str, list[Row]]) -> Table:
    """A line for each fault; its figures are those of summary.json."""
    columns = (
        label("Fault", lambda fault: fault_label(fault["kind"], fault["target"])),
        quantity(
            "Took hold",
            "applied_s",
            precise_seconds,
            "seconds since start; RFC 6412: convergence event instant",
        ),
        *(_FIRST, _ROUTE, _RATES, _LOSSES),
        label(
            "Methods",
            lambda fault: _methods(by_fault[fault["name"]]),
            "whether rates and losses say the same of each stream, to two sampling intervals",
        ),
        *(_SILENCE, _IMPAIRED),
    )
    return table("convergence", columns, [{**known[fault["name"]], **fault} for fault in faults])


def _routes_table(record: AnalysedRun, rows: Sequence[Row]) -> Table:
    """A line for each fault, stream and client, those first of which the methods disagree most."""
    labels = {
        fault["name"]: fault_label(fault["kind"], fault["target"])
        for fault in record.summary.get("faults") or ()
    }

    columns = (
        label("Fault", lambda row: labels.get(row["fault"], row["fault"])),
        label("Stream", lambda row: f"s{row['stream']}"),
        label("Client", "client"),
        quantity("First event", "switch_s", seconds, _ROUTE.help),
        quantity("By rates", "rate_derived_s", seconds),
        quantity("By losses", "loss_derived_s", seconds),
        quantity("Rates less losses", _apart_s, _signed),
        *(_SILENCE, _IMPAIRED),
    )
    ordered = sorted(rows, key=lambda row: -abs(_apart_s(row) or 0.0))
    return table("routes", columns, ordered[:ROUTES_SHOWN])


def _signed(time_s: float | None) -> str:
    return f"{'+' if time_s and time_s > 0 else ''}{seconds(time_s)}"


def _apart_s(row: Row) -> float | None:
    """How much longer rates say than losses."""
    rates_s, losses_s = row.get("rate_derived_s"), row.get("loss_derived_s")
    return None if rates_s is None or losses_s is None else rates_s - losses_s


def _methods(rows: Sequence[Row]) -> str:
    """Of how many streams at clients the methods say the same."""
    both = [each for row in rows if (each := _apart_s(row)) is not None]
    apart = [each for each in both if abs(each) > APART_S]
    if not both:
        return "not both measured"
    if not apart:
        return f"agree, {len(both)} of {len(rows)}" if len(both) < len(rows) else "agree"
    return f"{len(apart)} of {len(both)} apart, up to {seconds(max(map(abs, apart)))}"


def _why_apart(rows: Sequence[Row]) -> tuple[str, ...]:
    apart = [each for row in rows if (each := _apart_s(row)) is not None and abs(each) > APART_S]
    longer = (
        "Rates say longer than losses where a stream carried a part of its load, or was lost more than once."
    )
    shorter = "Losses say longer than rates where more than the usual load was late or lost."
    return (
        *((longer,) if max(apart, default=0.0) > 0 else ()),
        *((shorter,) if min(apart, default=0.0) < 0 else ()),
    )
