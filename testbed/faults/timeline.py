"""Turns an experiment's faults into the changes that a run applies, and says how overlapping ones add up.

Every fault on links becomes *holds*: from one instant to another, a direction of a link is kept in a state,
or some of its values are set. The rule for each direction of each link at each instant:

- it is up unless an active hold keeps it from being so; `down` outweighs `blackhole`;
- each value is that of the latest active `set` that gives it (by time, then by the order in the file), else
  the topology's; jitter never exceeds the delay that results;
- `restore` ends what earlier faults (by time, then order) do to a link, or all that one fault does. Holds
  on other links go on. A flapping link that is restored stays up;
- a hold with `for` ends by itself. Nothing changes once the run's duration is over.

Only what really changes becomes a change. It carries the name of the fault that brought it about: where a
hold ends, the restore's if there was one; where several meet in one instant, the last that begins there.

A separation keeps packets from crossing the region's LAN from one process's host to another's. Several may
overlap: two processes hear each other again when the last one that keeps them apart is over. Each change is
of one process, and says from whom its packets are kept; that of the other direction is the other's.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.faults import (
    Cut,
    Fault,
    Flap,
    Hold,
    Isolate,
    LastingFault,
    Partition,
    ProcessFault,
    Restore,
    Separate,
    SetLink,
)
from experiments.plan import Direction, FaultPlan, LinkChange, LinkState, ProcessAction, ProcessChange
from topologies.link_parameters import LinkParameters
from topologies.model import Link, Topology

FOREVER_US = 1 << 62
STATES = {"blackhole": LinkState.BLACKHOLE, "down": LinkState.DOWN}

Way = tuple[str, Direction]  # one direction of the link of this name
Order = tuple[int, int]  # when a fault begins, and its number in the file


@dataclass(slots=True)
class LinkHold:
    """What one fault does to one direction of one link, from `start_us` until just before `end_us`."""

    fault: Fault
    order: Order
    way: Way
    start_us: int
    end_us: int
    state: LinkState = LinkState.UP
    values: Mapping[str, Any] = field(default_factory=dict)
    ended_by: str = ""  # the restore that ended it early

    def end(self, at_us: int, restore: str) -> None:
        """End it at `at_us` unless it ends before."""
        if at_us < self.end_us:
            self.end_us, self.ended_by = max(at_us, self.start_us), restore


def link_changes(faults: Sequence[Fault], topology: Topology, duration_us: int) -> list[LinkChange]:
    """Every change of a link's state or parameters, by time."""
    holds_of: defaultdict[Way, list[LinkHold]] = defaultdict(list)
    for hold in link_holds(faults, topology):
        if hold.start_us < hold.end_us:
            holds_of[hold.way].append(hold)
    parameters_of = _configured(topology)
    changes = [
        change for way, holds in holds_of.items() for change in _changes_of(way, parameters_of[way], holds)
    ]
    positions = {way: number for number, way in enumerate(parameters_of)}
    changes = [change for change in changes if change.at_us < duration_us]
    return sorted(changes, key=lambda change: (change.at_us, positions[change.link, change.direction]))


def process_changes(faults: Iterable[Fault]) -> list[ProcessChange]:
    """What happens to processes, by time."""
    changes = [
        ProcessChange(fault.at_us, fault.name, fault.process, ProcessAction(fault.kind))
        for fault in faults
        if isinstance(fault, ProcessFault) and not isinstance(fault, Separate)
    ]
    return sorted(changes, key=lambda change: change.at_us)


def fault_plans(faults: Sequence[Fault], topology: Topology, duration_us: int) -> list[FaultPlan]:
    """The faults as asked for, by time, with the end of those that end within the run."""
    ends: defaultdict[str, int] = defaultdict(int)
    for hold in link_holds(faults, topology):
        ends[hold.fault.name] = max(ends[hold.fault.name], hold.end_us)
    for fault in faults:
        if isinstance(fault, Separate) and (end_us := until_us(fault, faults)) is not None:
            ends[fault.name] = end_us
    plans = [
        FaultPlan(
            name=fault.name,
            kind=fault.kind,
            target=fault.target,
            at_us=fault.at_us,
            until_us=ends[fault.name] if fault.name in ends and ends[fault.name] < duration_us else None,
        )
        for fault in faults
    ]
    return sorted(plans, key=lambda plan: plan.at_us)


def link_holds(faults: Sequence[Fault], topology: Topology) -> list[LinkHold]:
    """The holds of all faults, those ended early by restores included."""
    holds = [
        hold
        for number, fault in enumerate(faults)
        if isinstance(fault, LastingFault)
        for hold in _holds_of(fault, (fault.at_us, number), topology)
    ]
    for number, fault in enumerate(faults):
        if isinstance(fault, Restore):
            for hold in holds:
                if hold.order < (fault.at_us, number) and _ends(fault, hold, topology):
                    hold.end(fault.at_us, fault.name)
    return holds


def _ends(restore: Restore, hold: LinkHold, topology: Topology) -> bool:
    if isinstance(restore.what, str):
        return hold.fault.name == restore.what
    link = topology.link_between(restore.what)
    return link is not None and hold.way[0] == link.name


def _holds_of(fault: LastingFault, order: Order, topology: Topology) -> Iterator[LinkHold]:
    end = fault.at_us + fault.for_us if fault.for_us is not None else FOREVER_US
    for way in _ways(fault, topology):
        if isinstance(fault, SetLink):
            yield LinkHold(fault, order, way, fault.at_us, end, values=fault.values())
        elif isinstance(fault, Flap):
            for start in range(fault.at_us, end, fault.down_us + fault.up_us):
                stop = min(start + fault.down_us, end)
                yield LinkHold(fault, order, way, start, stop, STATES[fault.mode])
        elif isinstance(fault, Hold):
            yield LinkHold(fault, order, way, fault.at_us, end, STATES[fault.mode])


def _ways(fault: LastingFault, topology: Topology) -> list[Way]:
    """The directions of links that a fault acts on."""
    if not isinstance(fault, (Hold, SetLink)):
        return []
    ways = []
    for link, leads_forward in _links(fault, topology):
        forward, backward = Direction.FORWARD, Direction.BACKWARD
        if not leads_forward:
            forward, backward = backward, forward
        if fault.direction != "backward":
            ways.append((link.name, forward))
        if fault.direction != "forward":
            ways.append((link.name, backward))
    return ways


def _links(fault: LastingFault, topology: Topology) -> list[tuple[Link, bool]]:
    """The links that a fault acts on, and whether its own forward is the link's."""
    if isinstance(fault, Isolate):
        others = [region for region in topology.regions if region != fault.region]
        return topology.cut_set([[fault.region], others])
    if isinstance(fault, Partition):
        return topology.cut_set(fault.groups)
    if isinstance(fault, (Cut, Flap, SetLink)) and (link := topology.link_between(fault.link)):
        return [(link, link.between[0] == fault.link[0])]
    return []


def _configured(topology: Topology) -> dict[Way, LinkParameters]:
    parameters_of = {}
    for link in topology.links:
        parameters_of[link.name, Direction.FORWARD] = link.forward_parameters
        parameters_of[link.name, Direction.BACKWARD] = link.backward_parameters
    return parameters_of


def _changes_of(way: Way, configured: LinkParameters, holds: Sequence[LinkHold]) -> Iterator[LinkChange]:
    """Go through the instants at which holds of one direction begin or end."""
    begins: defaultdict[int, list[LinkHold]] = defaultdict(list)
    ends: defaultdict[int, list[LinkHold]] = defaultdict(list)
    for hold in holds:
        begins[hold.start_us].append(hold)
        ends[hold.end_us].append(hold)
    active: list[LinkHold] = []
    now = (LinkState.UP, configured)
    for at_us in sorted(begins.keys() | ends.keys()):
        active = [hold for hold in active if hold.end_us > at_us] + begins[at_us]
        before, now = now, _effect(configured, active)
        if now != before:
            yield LinkChange(at_us, _cause(begins[at_us], ends[at_us]), *way, *now)


def _effect(configured: LinkParameters, active: Sequence[LinkHold]) -> tuple[LinkState, LinkParameters]:
    states = {hold.state for hold in active}
    state = next((s for s in (LinkState.DOWN, LinkState.BLACKHOLE) if s in states), LinkState.UP)
    values: dict[str, Any] = {}
    for hold in sorted(active, key=lambda hold: hold.order):
        values.update(hold.values)
    parameters = replace(configured, **values)
    return state, replace(parameters, jitter_us=min(parameters.jitter_us, parameters.delay_us))


def _cause(begun: Sequence[LinkHold], ended: Sequence[LinkHold]) -> str:
    if begun:
        return max(begun, key=lambda hold: hold.order).fault.name
    last = max(ended, key=lambda hold: hold.order)
    return last.ended_by or last.fault.name


Pair = tuple[str, str]  # from one process to another
Span = tuple[int, int | None, str, str]  # from, to (None: for good), who began it, who ends it


def separation_changes(faults: Sequence[Fault], duration_us: int) -> list[ProcessChange]:
    """Which processes of a region are kept apart when: every change before `duration_us`, by time."""
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
