"""When the network or a process was disturbed, for the grey bands behind every timeline.

A band opens when a fault's change takes a link's direction (or a process) out of its normal state, or changes
what another fault has done to it, and closes with the fault's own end, or when a change of whichever fault
brings back the normal state. The plan says what each change means, run.json when it was applied; the k-th
change of a fault to a direction in the one is the k-th in the other. Where a change was never applied (the
run ended early) the planned time stands in only if the run has no applied times at all, and lasted until
then. A fault that could change nothing, because another did the same already, has the times that it was
planned for.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from analysis.pages.report.formatting import EN_DASH
from analysis.pages.report.run_reader import Row, RunRecord
from analysis.timelines.run_metadata import MENDING

NAME_ROWS = 3
_PROCESS_ENDS = {"continue", "restart", "replace", "rejoin"}
_APART = {"separate", "rejoin"}  # packets, not the process itself
_PEACEFUL = {"join", "leave", "give-up"}  # nothing is disturbed by clients that come and go, or by words
_SAME_TIME_S = 0.2  # changes of one fault that belong together are applied within milliseconds of each other


@dataclass(frozen=True, slots=True)
class Band:
    """A fault's disturbance, in seconds since time 0; `end_s` is None if it lasted to the end of the run."""

    fault: str
    label: str  # "cut r2-r3", with a dash
    start_s: float
    end_s: float | None
    links: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    row: int = 0  # where its name stands, below those of bands that it is within


@dataclass(frozen=True, slots=True)
class _Subject:
    """A link's direction, a process (aspect ""), or a process apart from a peer."""

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


_Span = tuple[_Change, float | None]  # what began it, and its end


def bands(record: RunRecord) -> tuple[Band, ...]:
    """Every disturbance of the run, by start. A flapping link gives one band per time it was down."""
    faults = {fault["name"]: fault for fault in record.plan.get("faults", ())}
    opened: dict[_Subject, dict[str, _Change]] = defaultdict(dict)  # by fault
    spans: list[_Span] = []
    for change in _changes(record):
        within = opened[change.subject]
        over = [fault for fault in within if _is_over(fault, change, faults)]
        spans += [(within.pop(fault), _end_s(fault, change, faults)) for fault in over]
        mends = faults.get(change.fault, {}).get("kind") in MENDING
        if change.disturbs and change.fault not in over and not mends:
            within[change.fault] = change
    spans += [(change, None) for within in opened.values() for change in within.values()]
    found = _merge(
        spans, {name: fault_label(fault["kind"], fault["target"]) for name, fault in faults.items()}
    )
    return tuple(_in_rows(sorted([*found, *_hidden(record, found)], key=lambda band: band.start_s)))


def _in_rows(found: Iterable[Band]) -> Iterator[Band]:
    """Each in the first row that has no band any more when it begins, or in the last."""
    free_s = [0.0] * NAME_ROWS
    for band in found:
        row = next((row for row, end_s in enumerate(free_s) if end_s <= band.start_s), NAME_ROWS - 1)
        free_s[row] = inf if band.end_s is None else band.end_s
        yield replace(band, row=row)


def _is_over(fault: str, change: _Change, faults: Mapping[str, Row]) -> bool:
    """Whether a change of its subject ends what a fault does to it: all of them, its own, or a later one."""
    until_us = faults.get(fault, {}).get("until_us")
    past = until_us is not None and until_us <= change.planned_us
    return not change.disturbs or change.fault == fault or past


def _end_s(fault: str, change: _Change, faults: Mapping[str, Row]) -> float:
    """When that was: before the change, if another fault went on with what it did."""
    until_us = faults.get(fault, {}).get("until_us")
    return change.at_s if until_us is None or until_us >= change.planned_us else until_us / 1e6


def _hidden(record: RunRecord, found: Sequence[Band]) -> Iterator[Band]:
    """Faults that had nothing to change, for all that they would have done another did already."""
    usual = _usual_shapes(record)
    changing = {change["fault"] for change in record.plan.get("changes", ()) if _disturbs(change, usual)}
    links = {f"{a}-{b}": link["name"] for link in record.plan.get("links", ()) for a, b in _both_ways(link)}
    for fault in record.plan.get("faults", ()):
        start_s, until_us = fault["at_us"] / 1e6, fault.get("until_us")
        within = any(band.start_s <= start_s <= (band.end_s or record.length_s) for band in found)
        if within and fault["name"] not in changing and fault["kind"] not in MENDING:
            yield Band(
                fault["name"],
                fault_label(fault["kind"], fault["target"]),
                start_s,
                None if until_us is None else until_us / 1e6,
                links=(links[fault["target"]],) if fault["target"] in links else (),
            )


def _both_ways(link: Row) -> tuple[tuple[str, str], tuple[str, str]]:
    return (link["a"], link["b"]), (link["b"], link["a"])


def _changes(record: RunRecord) -> list[_Change]:
    """The plan's changes at the times at which they were applied."""
    usual = _usual_shapes(record)
    applied = _applied_times(record)
    changes = []
    for planned in record.plan.get("changes", ()):
        key = _key(planned)
        if applied is None:
            at_s = planned["at_us"] / 1e6
            if at_s > record.length_s:
                continue
        elif applied[key]:
            at_s = applied[key].pop(0)
        else:
            continue  # never applied
        if "process" in planned:
            if planned["action"] in _PEACEFUL:
                continue
            subjects = _of_process(planned)
        else:
            subjects = [_Subject(planned["link"], planned["direction"], is_link=True)]
        what = (at_s, planned["at_us"], planned["fault"])
        changes += [_Change(*what, subject, _disturbs(planned, usual)) for subject in subjects]
    return sorted(changes, key=lambda change: change.at_s)


def _usual_shapes(record: RunRecord) -> dict[tuple[str, str], Row]:
    return {
        (link["name"], direction): link[direction]
        for link in record.plan.get("links", ())
        for direction in ("forward", "backward")
    }


def _disturbs(planned: Row, usual: Mapping[tuple[str, str], Row]) -> bool:
    """Whether something is not as it usually is after a change."""
    if "process" in planned:
        return str(planned["action"]) not in _PROCESS_ENDS
    way = (planned["link"], planned["direction"])
    return str(planned["state"]) != "up" or bool(planned["shape"] != usual.get(way))


def _of_process(change: Row) -> list[_Subject]:
    """What of a process is disturbed: it may be stopped, and kept apart from several, at once."""
    apart = [f"apart from {peer}" for peer in change.get("peers") or ("others",)]
    return [
        _Subject(change["process"], aspect, is_link=False)
        for aspect in (apart if change["action"] in _APART else [""])
    ]


def _applied_times(record: RunRecord) -> dict[tuple[str, str, str], list[float]] | None:
    """Seconds since time 0 at which each change was applied, by what it changed; None if none ever was."""
    zero_ns = (record.run.get("times") or {}).get("zero_ns")
    if zero_ns is None or not record.run.get("changes"):
        return None
    times: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for change in record.run["changes"]:
        applied_ns = change.get("applied_ns") or change.get("requested_ns")
        if applied_ns is not None:
            times[_key(change)].append((applied_ns - zero_ns) / 1e9)
    return times


def _key(change: Row) -> tuple[str, str, str]:
    if change.get("process"):
        return (change["fault"], change["process"], change["action"])
    return (change["fault"], change["link"], change["direction"])


def fault_label(kind: str, target: str) -> str:
    """What a fault does to what, as a person says it: "cut r2-r3", with a dash."""
    return f"{kind} {target.replace('-', EN_DASH) if '/' not in target else target}"


def _merge(spans: Iterable[_Span], labels: Mapping[str, str]) -> list[Band]:
    """One band for what one fault did at one time to several links, directions or processes."""
    groups: list[list[_Span]] = []
    for span in sorted(spans, key=lambda span: (span[0].fault, span[0].at_s)):
        first = groups[-1][0][0] if groups else None
        if first and first.fault == span[0].fault and span[0].at_s - first.at_s < _SAME_TIME_S:
            groups[-1].append(span)
        else:
            groups.append([span])
    return [_band(group, labels) for group in groups]


def _band(group: Sequence[_Span], labels: Mapping[str, str]) -> Band:
    fault = group[0][0].fault
    ends = [end_s for _, end_s in group]
    return Band(
        fault=fault,
        label=labels.get(fault, fault),
        start_s=group[0][0].at_s,
        end_s=None if None in ends else max(end for end in ends if end is not None),
        links=tuple(sorted({change.subject.name for change, _ in group if change.subject.is_link})),
        processes=tuple(sorted({change.subject.name for change, _ in group if not change.subject.is_link})),
    )
