"""When the network or a process was disturbed, for the grey bands behind every timeline.

A band opens when a fault's change takes a link's direction (or a process) out of its normal state and closes
when a later change, of whichever fault, brings it back. The plan says what each change means, run.json when
it was applied; the k-th change of a fault to a direction in the one is the k-th in the other. Where a change
was never applied (the run ended early) the planned time stands in only if the run has no applied times at
all, and lasted until then.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from analysis.report.formatting import EN_DASH
from analysis.report.reading import Row, RunRecord

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


@dataclass(frozen=True, slots=True)
class _Change:
    at_s: float
    fault: str
    subject: tuple[str, str]  # (link, direction), or (process, "")
    disturbs: bool


def bands(record: RunRecord) -> tuple[Band, ...]:
    """Every disturbance of the run, by start. A flapping link gives one band per time it was down."""
    open_since: dict[tuple[str, str], _Change] = {}
    spans: list[tuple[_Change, float | None]] = []
    for change in _changes(record):
        before = open_since.get(change.subject)
        if before is not None and not change.disturbs:
            spans.append((open_since.pop(change.subject), change.at_s))
        elif before is None and change.disturbs:
            open_since[change.subject] = change
    spans.extend((change, None) for change in open_since.values())
    return tuple(_merge(spans, _labels(record)))


def _changes(record: RunRecord) -> list[_Change]:
    """The plan's changes at the times at which they were applied."""
    base = {
        (link["name"], direction): link[direction]
        for link in record.plan.get("links", ())
        for direction in ("forward", "backward")
    }
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
            disturbs, subject = planned["action"] not in _PROCESS_ENDS, _of_process(planned)
        else:
            subject = (planned["link"], planned["direction"])
            disturbs = planned["state"] != "up" or planned["shape"] != base.get(subject)
        changes.append(_Change(at_s, planned["fault"], subject, disturbs))
    return sorted(changes, key=lambda change: change.at_s)


def _of_process(change: Row) -> tuple[str, str]:
    """What of a process is disturbed: it may be stopped and kept apart at once."""
    return (change["process"], "apart" if change["action"] in _APART else "")


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


def _labels(record: RunRecord) -> dict[str, str]:
    return {
        fault["name"]: fault_label(fault["kind"], fault["target"]) for fault in record.plan.get("faults", ())
    }


def fault_label(kind: str, target: str) -> str:
    """What a fault does to what, as a person says it: "cut r2-r3", with a dash."""
    return f"{kind} {target.replace('-', EN_DASH) if '/' not in target else target}"


def _merge(spans: Iterable[tuple[_Change, float | None]], labels: dict[str, str]) -> Iterable[Band]:
    """One band for what one fault did at one time to several links, directions or processes."""
    groups: list[list[tuple[_Change, float | None]]] = []
    for span in sorted(spans, key=lambda span: (span[0].fault, span[0].at_s)):
        first = groups[-1][0][0] if groups else None
        if first and first.fault == span[0].fault and span[0].at_s - first.at_s < _SAME_TIME_S:
            groups[-1].append(span)
        else:
            groups.append([span])
    return sorted((_band(group, labels) for group in groups), key=lambda band: band.start_s)


def _band(group: list[tuple[_Change, float | None]], labels: dict[str, str]) -> Band:
    fault = group[0][0].fault
    ends = [end_s for _, end_s in group]
    return Band(
        fault=fault,
        label=labels.get(fault, fault),
        start_s=group[0][0].at_s,
        end_s=None if None in ends else max(end for end in ends if end is not None),
        links=tuple(sorted({change.subject[0] for change, _ in group if change.subject[1]})),
        processes=tuple(sorted({change.subject[0] for change, _ in group if not change.subject[1]})),
    )
