"""Which processes of a region are kept apart when: from faults to changes of one process each.

A separation keeps packets from crossing the region's LAN from one process's host to another's. Several may
overlap: two processes hear each other again when the last one that keeps them apart is over. Each change is
of one process, and says from whom its packets are kept; that of the other direction is the other's.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from experiments.faults import Fault, Restore, Separate
from testbed.plan import ProcessAction, ProcessChange

Pair = tuple[str, str]  # from one process to another
Span = tuple[int, int | None, str, str]  # from, to (None: for good), who began it, who ends it


def separation_changes(faults: Sequence[Fault], duration_us: int) -> list[ProcessChange]:
    """Every change before `duration_us`, by time."""
    peers: defaultdict[tuple[int, str, str, ProcessAction], list[str]] = defaultdict(list)
    for (process, peer), spans in _spans(faults).items():
        for at_us, fault, action in _turns(spans):
            if at_us < duration_us:
                peers[at_us, fault, process, action].append(peer)
    changes = [ProcessChange(*key[:3], key[3], tuple(others)) for key, others in peers.items()]
    return sorted(changes, key=lambda change: change.at_us)


def until_us(fault: Separate, faults: Sequence[Fault]) -> int | None:
    """When it is over, and None for one that lasts for good."""
    return _end(fault, faults)[0]


def _spans(faults: Sequence[Fault]) -> dict[Pair, list[Span]]:
    """When each pair is kept apart, by start."""
    found: defaultdict[Pair, list[Span]] = defaultdict(list)
    for fault in sorted((each for each in faults if isinstance(each, Separate)), key=lambda each: each.at_us):
        end_us, ended_by = _end(fault, faults)
        for other in fault.others:
            if fault.direction != "backward":
                found[fault.process, other].append((fault.at_us, end_us, fault.name, ended_by))
            if fault.direction != "forward":
                found[other, fault.process].append((fault.at_us, end_us, fault.name, ended_by))
    return dict(found)


def _end(fault: Separate, faults: Sequence[Fault]) -> tuple[int | None, str]:
    """When it ends, and which fault ends it."""
    ends = [(fault.at_us + fault.for_us, fault.name)] if fault.for_us is not None else []
    ends += [
        (each.at_us, each.name) for each in faults if isinstance(each, Restore) and each.what == fault.name
    ]
    return min(ends, default=(None, fault.name))


def _turns(spans: Sequence[Span]) -> Iterator[tuple[int, str, ProcessAction]]:
    """When a pair is parted and joined, and by which fault; spans that touch are one."""
    open_until: int | None = -1
    ended_by = ""
    for start_us, end_us, name, ends in spans:
        if open_until is not None and start_us > open_until:
            if open_until >= 0:
                yield open_until, ended_by, ProcessAction.REJOIN
            yield start_us, name, ProcessAction.SEPARATE
            open_until, ended_by = end_us, ends
        elif open_until is not None and (end_us is None or end_us > open_until):
            open_until, ended_by = end_us, ends
    if open_until is not None and open_until >= 0:
        yield open_until, ended_by, ProcessAction.REJOIN
