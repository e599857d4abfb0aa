"""Disturbances of the network or a process, for the grey bands behind every timeline.

A band opens when a fault's change takes a link's direction (or a process) out of its normal state, or changes
what another fault has done to it. It closes at the end of that fault, or when a change of any fault restores
the normal state. The plan defines the effect of each change, run.json the time when it was applied. For a
change without an applied time, the planned time is used only if the run has no applied times at all and
lasted until then. A fault without effect, because another had the same effect already, has its planned times.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from analysis.pages.report.formatting import EN_DASH
from analysis.pages.report.run_reader import AnalysedRun
from experiments.faults.kinds import kind_named
from experiments.planned.changes import (
    Change,
    LinkChange,
    LinkDirectionName,
    LinkState,
    ProcessAction,
    ProcessChange,
)
from experiments.planned.plan import FaultPlan, Plan
from topologies.link_parameters import LinkParameters

NAME_ROWS = 3
_PROCESS_ENDS = {ProcessAction.CONTINUE, ProcessAction.RESTART, ProcessAction.REPLACE}
_APART = {ProcessAction.SEPARATE, ProcessAction.REJOIN}  # these affect packets, not the process itself
_PEACEFUL = {ProcessAction.JOIN, ProcessAction.LEAVE, ProcessAction.GIVE_UP}
"""Actions that do not count as disturbances: clients that join or leave, and protocol messages."""
_SAME_TIME_S = 0.2  # changes of one fault at one time are applied within milliseconds of each other


@dataclass(frozen=True, slots=True)
class FaultPeriod:
    """A fault's disturbance, in seconds since time 0; `end_s` is None if it lasted to the end of the run."""

    fault: str
    label: str  # "cut r2-r3", with a dash
    start_s: float
    end_s: float | None
    links: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    row: int = 0  # row of its name, below overlapping bands


@dataclass(frozen=True, slots=True)
class _Subject:
    """A link's direction, a process (aspect ""), or a process separated from a peer."""

    name: str
    aspect: str
    is_link: bool


@dataclass(frozen=True, slots=True)
class _Change:
    at_s: float
    planned_us: int
    fault: str
    subject: _Subject
    disturbs: bool


_Span = tuple[_Change, float | None]  # the change that began it, and its end


def bands(record: AnalysedRun) -> tuple[FaultPeriod, ...]:
    """Return every disturbance of the run, by start.

    A flapping link gives one band for each time it was down.
    """
    faults = {fault.name: fault for fault in record.plan.faults}
    opened: dict[_Subject, dict[str, _Change]] = defaultdict(dict)  # by fault
    spans: list[_Span] = []
    for change in _changes(record):
        within = opened[change.subject]
        over = [fault for fault in within if _is_over(fault, change, faults)]
        spans += [(within.pop(fault), _end_s(fault, change, faults)) for fault in over]
        mends = change.fault in faults and kind_named(faults[change.fault].kind).mends
        if change.disturbs and change.fault not in over and not mends:
            within[change.fault] = change
    spans += [(change, None) for within in opened.values() for change in within.values()]
    found = _merge(spans, {name: fault_label(fault.kind, fault.target) for name, fault in faults.items()})
    return tuple(_in_rows(sorted([*found, *_hidden(record, found)], key=lambda band: band.start_s)))


def _in_rows(found: Iterable[FaultPeriod]) -> Iterator[FaultPeriod]:
    """Assign each band the first row that is free at its start, or the last row."""
    free_s = [0.0] * NAME_ROWS
    for band in found:
        row = next((row for row, end_s in enumerate(free_s) if end_s <= band.start_s), NAME_ROWS - 1)
        free_s[row] = inf if band.end_s is None else band.end_s
        yield replace(band, row=row)


def _is_over(fault: str, change: _Change, faults: Mapping[str, FaultPlan]) -> bool:
    """Return whether a change of its subject ends a fault's effect: a restoring, own or later change."""
    until_us = faults[fault].until_us if fault in faults else None
    past = until_us is not None and until_us <= change.planned_us
    return not change.disturbs or change.fault == fault or past


def _end_s(fault: str, change: _Change, faults: Mapping[str, FaultPlan]) -> float:
    """Return the end of a fault's effect; it is before the change if another fault continued the effect."""
    until_us = faults[fault].until_us if fault in faults else None
    return change.at_s if until_us is None or until_us >= change.planned_us else until_us / 1e6


def _hidden(record: AnalysedRun, found: Sequence[FaultPeriod]) -> Iterator[FaultPeriod]:
    """Yield faults without effect, because other faults had the same effect already."""
    usual = _usual_shapes(record.plan)
    changing = {change.fault for change in record.plan.changes if _disturbs(change, usual)}
    links = {
        f"{a}-{b}": link.name for link in record.plan.links for a, b in ((link.a, link.b), (link.b, link.a))
    }
    links |= {link.name: link.name for link in record.plan.links}
    for fault in record.plan.faults:
        start_s, until_us = fault.at_us / 1e6, fault.until_us
        within = any(band.start_s <= start_s <= (band.end_s or record.length_s) for band in found)
        if within and fault.name not in changing and not kind_named(fault.kind).mends:
            yield FaultPeriod(
                fault.name,
                fault_label(fault.kind, fault.target),
                start_s,
                None if until_us is None else until_us / 1e6,
                links=(links[fault.target],) if fault.target in links else (),
            )


def _changes(record: AnalysedRun) -> list[_Change]:
    """Return the plan's changes at the times when they were applied."""
    usual = _usual_shapes(record.plan)
    changes = []
    for change, at_s in _timed(record):
        if isinstance(change, LinkChange):
            aspect = f"{change.direction} {change.selects or ''}"
            subjects = [_Subject(change.link, aspect, is_link=True)]
        else:
            subjects = [] if change.action in _PEACEFUL else _of_process(change)
        what = (at_s, change.at_us, change.fault)
        changes += [_Change(*what, subject, _disturbs(change, usual)) for subject in subjects]
        if isinstance(change, ProcessChange) and change.action is ProcessAction.RESET:  # over at once
            changes += [_Change(*what, subject, disturbs=False) for subject in subjects]
    return sorted(changes, key=lambda change: change.at_s)


def _timed(record: AnalysedRun) -> Iterator[tuple[Change, float]]:
    """Yield the changes of faults that took effect, with seconds since time 0.

    Arrivals and departures of clients are left out; there may be thousands.
    """
    churn = {each.name for each in record.plan.churn}
    zero_ns = record.run.times.zero_ns
    if zero_ns is None or not record.run.changes:
        for change in record.plan.changes:
            if change.at_us / 1e6 <= record.length_s and change.fault not in churn:
                yield change, change.at_us / 1e6
        return
    for change, applied in record.run.changes_applied:
        if applied.applied_ns is not None and change.fault not in churn:
            yield change, (applied.applied_ns - zero_ns) / 1e9


def _usual_shapes(plan: Plan) -> dict[tuple[str, str], LinkParameters]:
    return {
        (link.name, direction): link.towards(direction)
        for link in plan.links
        for direction in LinkDirectionName
    }


def _disturbs(change: Change, usual: Mapping[tuple[str, str], LinkParameters]) -> bool:
    """Return whether the subject is not in its normal state after a change."""
    if isinstance(change, ProcessChange):
        return change.action not in _PROCESS_ENDS and not change.action.ends_another
    return change.state is not LinkState.UP or change.parameters != usual[change.link, change.direction]


def _of_process(change: ProcessChange) -> list[_Subject]:
    """Return the disturbed aspects of a process, which may be stopped, full, separated and reset at once."""
    aspects = [""]
    if change.action in _APART:
        aspects = [f"apart from {peer}" for peer in change.peers or ("others",)]
    elif change.action is ProcessAction.RESET:
        aspects = ["reset"]
    elif change.rule is not None:
        aspects = [f"kept or full by {change.rule}"]
    return [_Subject(change.process, aspect, is_link=False) for aspect in aspects]


def fault_label(kind: str, target: str) -> str:
    """Return the effect and target of a fault as text: "cut r2-r3", with a dash for a link."""
    is_link = target.count("-") == 1 and "/" not in target and kind not in {"isolate", "partition"}
    return f"{kind} {target.replace('-', EN_DASH) if is_link else target}"


def _merge(spans: Iterable[_Span], labels: Mapping[str, str]) -> list[FaultPeriod]:
    """Merge one fault's simultaneous changes of several links, directions or processes into one band."""
    groups: list[list[_Span]] = []
    for span in sorted(spans, key=lambda span: (span[0].fault, span[0].at_s)):
        first = groups[-1][0][0] if groups else None
        if first and first.fault == span[0].fault and span[0].at_s - first.at_s < _SAME_TIME_S:
            groups[-1].append(span)
        else:
            groups.append([span])
    return [_band(group, labels) for group in groups]


def _band(group: Sequence[_Span], labels: Mapping[str, str]) -> FaultPeriod:
    fault = group[0][0].fault
    ends = [end_s for _, end_s in group]
    return FaultPeriod(
        fault=fault,
        label=labels.get(fault, fault),
        start_s=group[0][0].at_s,
        end_s=None if None in ends else max(end for end in ends if end is not None),
        links=tuple(sorted({change.subject.name for change, _ in group if change.subject.is_link})),
        processes=tuple(sorted({change.subject.name for change, _ in group if not change.subject.is_link})),
    )
