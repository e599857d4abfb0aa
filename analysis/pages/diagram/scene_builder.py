"""Builds the scene of a time window of an analysed run.

The window around a fault begins shortly before the fault took effect and ends when the analysis found that
all events flowed again. The default stream is the one with most changes and losses.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analysis.capture.time_range import TimeRange
from analysis.jobs import transfers
from analysis.messages.label import LABEL_COLUMNS
from analysis.pages.diagram.message_selection import DiagramQuery, ExtraMessages, select_messages
from analysis.pages.diagram.ranks import Ranks, ranks_of
from analysis.pages.diagram.scene import Lifeline, Scene
from analysis.pages.report.charts.charts import fault_spans
from analysis.pages.report.formatting import EN_DASH
from analysis.pages.report.run_reader import AnalysedRun, Row
from analysis.schemas import LOST
from analysis.timelines.run_metadata import read_metadata
from experiments.planned.changes import ProcessChange
from experiments.planned.plan import ProcessPlan
from experiments.records.rundir import RunDirectory, run_argument
from topologies.drawing.palette import colour_of
from topologies.errors import InputError
from topologies.strict import suggestion

COLUMNS = (
    "t_ns",
    "sender",
    "receiver",
    "t_sent_ns",
    "t_complete_ns",
    "fate",
    "retransmitted",
    *LABEL_COLUMNS,
)
LATE_S = 1.0  # messages sent before the window may arrive in it
STREAMS_NAMED = 6
MESSAGES_MAX = 400_000  # in a window; more are slow to draw and unreadable
BEFORE_S = 0.25
AFTER_S = 0.35  # margin after the last recovery
UNKNOWN_S = 1.5  # after a fault without recovery, or with unknown recovery
LONGEST_S = 4.0
_CHANGE_WEIGHT = 100  # a subscription outweighs any number of lost batches


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A time window in seconds since time 0."""

    from_s: float
    to_s: float


def around_fault(run: RunDirectory, record: AnalysedRun, fault: str) -> Scene:
    """Return the scene of a fault as the report shows it. Raises as `make_scene` does."""
    drawn_by = command(run_argument(run.path), DiagramQuery(), fault=fault)
    return make_scene(run, record, around(record, fault), DiagramQuery(), drawn_by, fault)


def make_scene(  # noqa: PLR0917 (independent parameters)
    run: RunDirectory,
    record: AnalysedRun,
    moment: TimeWindow,
    wanted: DiagramQuery,
    drawn_by: str,
    fault: str | None,
) -> Scene:
    """Return the scene of a time window.

    drawn_by: the command that draws it again. fault: show its effect on one stream, unless `wanted` names
    one, and on the hosts that took part, unless `wanted` names hosts. Raises AnalysisError if the run has no
    table of transfers, InputError if no message matches.
    """
    rows = _rows(run, record, moment)
    shown_of_it = wanted if fault is None else _focused_on_fault(wanted, rows, record, fault)
    hosts = {host.name: host.region for host in record.plan.hosts}
    chosen = select_messages(
        rows, shown_of_it, _zero_ns(record), moment.to_s - moment.from_s, hosts, _ranks(record)
    )
    if not chosen.arrows:
        when = f"{moment.from_s:.3f}{EN_DASH}{moment.to_s:.3f} s"
        raise InputError(record.name, None, "", f"has no matching messages between {when}")
    drawn = {end for arrow in chosen.arrows for end in (arrow.sender, arrow.receiver)}
    shown = [host for host in hosts if host in drawn or host in wanted.hosts]
    return Scene(
        title=_title(record, shown_of_it.stream),
        from_s=moment.from_s,
        to_s=moment.to_s,
        lifelines=tuple(
            Lifeline(host, hosts[host], colour_of(record.regions.index(hosts[host]))) for host in shown
        ),
        arrows=tuple(chosen.arrows),
        disturbances=tuple(
            span
            for span in fault_spans(record)
            if span.start < moment.to_s and (span.end is None or span.end > moment.from_s)
        ),
        left_out=(*_other_streams(rows, wanted, shown_of_it, _ranks(record)), *chosen.left_out),
        messages=sum(len(arrow.flights) for arrow in chosen.arrows),
        command=drawn_by,
        ranks=_ranks(record),
        error_ms=_error_ms(record, shown, moment),
    )


def _focused_on_fault(wanted: DiagramQuery, rows: list[Row], record: AnalysedRun, fault: str) -> DiagramQuery:
    """Focus on the stream that a link fault disturbed, or on all changes for a fault of a process."""
    plain = not (wanted.hosts or wanted.regions or wanted.types)
    process = victim(record, fault)
    if process is not None:
        owned = (stream.number for stream in record.plan.streams_of(process.region))
        stream = next(owned, None) if wanted.stream is None else wanted.stream
        beside, host = ExtraMessages.ALL_CHANGES, process.host
    else:
        stream = (
            next(iter(disturbed_streams(rows, _ranks(record))), None)
            if wanted.stream is None
            else wanted.stream
        )
        beside, host = ExtraMessages.WHAT_IS_OF_NONE, None
    if stream is None:
        return wanted
    return replace(wanted, stream=stream, beside=beside, parts_only=plain, victim=host)


def figure_name(moment: str, wanted: DiagramQuery) -> str:
    """Return the file name of a picture, of a fault or time, among the run's figures."""
    stream = [] if wanted.stream is None else [f"s{wanted.stream}"]
    words = ["diagram", moment, *sorted(wanted.hosts | wanted.regions | wanted.types), *stream]
    return "".join(each if each.isalnum() or each in "-." else "-" for each in "-".join(words))


def command(
    run: str, wanted: DiagramQuery, moment: TimeWindow | None = None, fault: str | None = None
) -> str:
    """Return the command that draws a time window or a fault. run: as `run_argument` names it."""
    words = ["cutset", "diagram", run]
    if fault is not None:
        words += ["--around", fault]
    if moment is not None:
        words += ["--from", f"{moment.from_s:.3f}", "--to", f"{moment.to_s:.3f}"]
    for option, values in (("--host", wanted.hosts), ("--region", wanted.regions), ("--type", wanted.types)):
        for value in sorted(values):
            words += [option, value]
    if wanted.stream is not None:
        words += ["--stream", str(wanted.stream)]
    return shlex.join(words)


def _ranks(record: AnalysedRun) -> Ranks:
    host_at = {host.address: host.name for host in record.plan.hosts}
    return replace(ranks_of(record.plan.system), host_at=host_at)


def _rows(run: RunDirectory, record: AnalysedRun, moment: TimeWindow) -> list[Row]:
    zero_ns = _zero_ns(record)
    first_s = moment.from_s - LATE_S
    times = TimeRange(zero_ns + round(first_s * 1e9), zero_ns + round(moment.to_s * 1e9))
    table = transfers.read(run, times, COLUMNS)
    if table.num_rows > MESSAGES_MAX:
        problem = (
            f"has {table.num_rows:,} messages in {moment.to_s - first_s:.1f} s, too many for one picture"
        )
        raise InputError(record.name, None, "", problem + ": narrow the window with --from and --to")
    begins_ns = zero_ns + round(moment.from_s * 1e9)
    stream_at = read_metadata(record.run).stream_at
    return [
        row if row["stream"] is not None else {**row, "stream": stream_at.get(row["key"])}
        for row in table.to_pylist()
        if row["t_ns"] >= begins_ns or (row["t_complete_ns"] or 0) >= begins_ns
    ]


def _error_ms(record: AnalysedRun, hosts: Iterable[str], moment: TimeWindow) -> float | None:
    """Return the widest error bound between any of these hosts; None if they share a clock."""
    hosts = list(hosts)
    if all(record.clocks.share_clock(hosts[0], host) for host in hosts[1:]):
        return None
    times = _zero_ns(record) + np.rint(np.array([moment.from_s, moment.to_s]) * 1e9).astype(np.int64)
    return float(record.clocks.error_bounds_ns(hosts, hosts, times).max()) / 1e6


def _zero_ns(record: AnalysedRun) -> int:
    zero_ns = record.run.times.zero_ns
    if zero_ns is None:
        raise InputError(record.name, None, "", "ended before its nodes published anything")
    return zero_ns


def _title(record: AnalysedRun, stream: int | None) -> str:
    name = str(record.experiment.get("name") or record.name)
    return name if stream is None else f"{name}, stream s{stream}"


def _other_streams(
    rows: list[Row], wanted: DiagramQuery, chosen: DiagramQuery, ranks: Ranks
) -> Iterable[str]:
    """Yield that only one stream is shown, if none was requested, and how to show others that changed."""
    if wanted.stream == chosen.stream:
        return
    others = sorted({row["stream"] for row in rows if row["stream"] is not None} - {chosen.stream})
    if others:
        changes_are_shown = chosen.beside is ExtraMessages.ALL_CHANGES
        names = ", ".join(f"s{each}" for each in others[:STREAMS_NAMED])
        more = "" if changes_are_shown else _disturbed_too(rows, chosen, ranks)
        yield f"{'routine messages' if changes_are_shown else 'messages'} about other streams ({names}){more}"


def _disturbed_too(rows: list[Row], chosen: DiagramQuery, ranks: Ranks) -> str:
    found = [each for each in disturbed_streams(rows, ranks) if each != chosen.stream]
    if not found:
        return ""
    names = ", ".join(f"s{each}" for each in sorted(found[:STREAMS_NAMED]))
    options = " or ".join(f"--stream {each}" for each in sorted(found[:STREAMS_NAMED]))
    disturbed, them = ("was", "it") if len(found) == 1 else ("were", "them")
    return f", and {names} {disturbed} disturbed too: {options} shows {them}"


def fault_times(record: AnalysedRun) -> dict[str, float]:
    """Return when each fault first took effect, in seconds since time 0, in the plan's order."""
    zero_ns = record.run.times.zero_ns
    found: dict[str, float] = {}
    for change, applied in record.run.changes_applied:
        if applied.applied_ns is not None and zero_ns is not None:
            found.setdefault(change.fault, (applied.applied_ns - zero_ns) / 1e9)
    planned = [fault.name for fault in record.plan.faults]
    return {name: found[name] for name in dict.fromkeys((*planned, *found)) if name in found}


def around(record: AnalysedRun, fault: str, span_s: float | None = None) -> TimeWindow:
    """Return the time window around a fault. span_s: seconds before and after it, instead of until recovery.

    Raises InputError if the run has no such fault, or if the fault never took effect.
    """
    times = fault_times(record)
    if fault not in times:
        problem = f"has no fault {fault!r} that took effect{suggestion(fault, times)}"
        raise InputError(record.name, None, "", problem)
    at_s = times[fault]
    if span_s is not None:
        return TimeWindow(max(0.0, at_s - span_s), at_s + span_s)
    recovery = (record.summary.get("recovery") or {}).get(fault) or {}
    took = [recovery[name] for name in ("resubscribe_s", "switch_s") if recovery.get(name) is not None]
    after_s = min(max(took) + AFTER_S, LONGEST_S) if took else UNKNOWN_S
    return TimeWindow(max(0.0, round(at_s - BEFORE_S, 2)), round(at_s + after_s, 2))


def victim(record: AnalysedRun, fault: str) -> ProcessPlan | None:
    """Return the planned process that a fault kills, stops or restarts; None if it affects no process."""
    changes = (change for change in record.plan.changes if isinstance(change, ProcessChange))
    name = next((change.process for change in changes if change.fault == fault), None)
    return next((each for each in record.plan.processes if each.name == name), None)


def disturbed_streams(rows: Iterable[Mapping[str, Any]], ranks: Ranks) -> list[int]:
    """Return the streams of these transfers that changed or lost messages, the most affected first."""
    weights: Counter[int] = Counter()
    for row in rows:
        if row["stream"] is not None:
            seldom = ranks.what(row) not in ranks.ordinary
            weights[row["stream"]] += _CHANGE_WEIGHT * seldom + (row["fate"] == LOST)
    best = sorted(weights.items(), key=lambda each: (-each[1], each[0]))
    return [stream for stream, weight in best if weight]
