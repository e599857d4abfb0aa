"""Compiles an experiment's faults into the changes that a run applies, and combines overlapping ones.

Every fault on links becomes *effects*: from one instant to another, a link direction is kept in a state, or
some of its parameters are set. The rule for each link direction at each instant:

- it is up unless an active effect says otherwise; `down` outweighs `blackhole`;
- each parameter is that of the latest active `set` that gives it (by time, then by the order in the file),
  else the topology's; jitter never exceeds the delay that results;
- `restore` ends what earlier faults (by time, then order) do to a link, or all that one fault does. Effects
  on other links go on. A flapping link that is restored stays up;
- an effect with `for` ends by itself. Nothing changes once the run's duration is over.

Only real differences become changes. A change carries the name of the fault that caused it: where an effect
ends, that of the restore if there was one; where several meet in one instant, the last that begins there.

A separation keeps packets from crossing the region's LAN from one process's host to another's. Several may
overlap: two processes are reachable to each other again when the last separation between them is over. Each
change is of one process and names the peers that no longer receive its packets; the other direction is a
change of the other process. A block has a rule of its own at each host whose packets it keeps, so blocks that
overlap add up, and each ends by itself. So do fills of one file system, and what makes one disk slow; a
replace gives another disk and ends both.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.changes import (
    Direction,
    LinkChange,
    LinkState,
    ProcessAction,
    ProcessChange,
    Trigger,
)
from experiments.faults import (
    Block,
    Cut,
    DiskFault,
    Fault,
    Fill,
    Flap,
    Isolate,
    LastingFault,
    Outage,
    Partition,
    ProcessFault,
    Replace,
    Reset,
    Restore,
    Separate,
    SetLink,
    SlowDisk,
    TriggeredFault,
)
from experiments.plan import FaultPlan
from topologies.link_parameters import LinkParameters
from topologies.model import Link, Topology

FOREVER_US = 1 << 62
STATES = {"blackhole": LinkState.BLACKHOLE, "down": LinkState.DOWN}

_DISK_ACTIONS: Mapping[str, tuple[ProcessAction, ProcessAction]] = {
    Fill.kind: (ProcessAction.FILL, ProcessAction.UNFILL),
    SlowDisk.kind: (ProcessAction.SLOW_DISK, ProcessAction.UNSLOW_DISK),
}
"""How what is done to a disk begins, and ends."""
LastingProcessFault = Separate | Block | DiskFault
LinkDirection = tuple[str, Direction]  # one direction of the link of this name
Order = tuple[int, int]  # when a fault begins, and its number in the file


@dataclass(slots=True)
class LinkEffect:
    """The effect of one fault on one link direction, from `start_us` until just before `end_us`."""

    fault: Fault
    order: Order
    link_direction: LinkDirection
    start_us: int
    end_us: int
    state: LinkState = LinkState.UP
    values: Mapping[str, Any] = field(default_factory=dict)
    ended_by: str = ""  # the restore that ended it early

    def end(self, at_us: int, restore: str) -> None:
        """End the effect at `at_us` unless it ends earlier."""
        if at_us < self.end_us:
            self.end_us, self.ended_by = max(at_us, self.start_us), restore


def link_changes(faults: Sequence[Fault], topology: Topology, duration_us: int) -> list[LinkChange]:
    """Every change of a link's state or parameters, by time."""
    effects_of: defaultdict[LinkDirection, list[LinkEffect]] = defaultdict(list)
    for effect in link_effects(faults, topology):
        if effect.start_us < effect.end_us:
            effects_of[effect.link_direction].append(effect)
    parameters_of = _configured(topology)
    changes = [
        change
        for link_direction, effects in effects_of.items()
        for change in _changes_of(link_direction, parameters_of[link_direction], effects)
    ]
    positions = {link_direction: number for number, link_direction in enumerate(parameters_of)}
    changes = [change for change in changes if change.at_us < duration_us]
    return sorted(changes, key=lambda change: (change.at_us, positions[change.link, change.direction]))


def waiting_problem(faults: Sequence[Fault], topology: Topology) -> str | None:
    """Why what a link does, or whether two processes hear each other, is not known while a fault on it waits,
    or None: something else is done to it.
    """
    of_direction: defaultdict[LinkDirection, list[LinkEffect]] = defaultdict(list)
    for effect in link_effects(faults, topology):
        of_direction[effect.link_direction].append(effect)
    for (link, _), effects in of_direction.items():
        for one in (each for each in effects if _trigger(each.fault) is not None):
            for other in effects:
                apart = other.end_us <= one.start_us or one.end_us <= other.start_us
                if one is not other and not apart:
                    return f"{one.fault.name} waits, and {other.fault.name} changes {link} meanwhile"
    waiting = {fault.name for fault in faults if _trigger(fault) is not None}
    for (process, peer), spans in _spans(faults).items():
        for begin_us, end_us, name, _ in (each for each in spans if each[2] in waiting):
            for its_begin_us, its_end_us, its_name, _ in spans:
                ended = (FOREVER_US if each is None else each for each in (end_us, its_end_us))
                ends_us = tuple(ended)
                if name != its_name and its_begin_us <= ends_us[0] and begin_us <= ends_us[1]:
                    return f"{name} waits, and {its_name} keeps {process} from {peer} meanwhile"
    return None


def process_changes(faults: Iterable[Fault]) -> list[ProcessChange]:
    """All changes of processes, by time."""
    changes = [
        ProcessChange(
            fault.at_us,
            fault.name,
            fault.process,
            ProcessAction(fault.kind),
            peers=fault.others if isinstance(fault, Reset) else (),
            port=fault.port if isinstance(fault, Reset) else None,
            when=_trigger(fault),
        )
        for fault in faults
        if isinstance(fault, ProcessFault) and not isinstance(fault, LastingProcessFault)
    ]
    return sorted(changes, key=lambda change: change.at_us)


def _trigger(fault: Fault) -> Trigger | None:
    when = fault.when if isinstance(fault, TriggeredFault) else None
    return None if when is None else Trigger(when.process, when.sends, when.times)


def fault_plans(faults: Sequence[Fault], topology: Topology, duration_us: int) -> list[FaultPlan]:
    """The faults as configured, by time, each with its end if it ends within the run."""
    ends: defaultdict[str, int] = defaultdict(int)
    for effect in link_effects(faults, topology):
        ends[effect.fault.name] = max(ends[effect.fault.name], effect.end_us)
    for fault in faults:
        if isinstance(fault, LastingProcessFault) and (end_us := until_us(fault, faults)) is not None:
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


def link_effects(faults: Sequence[Fault], topology: Topology) -> list[LinkEffect]:
    """The effects of all faults, including those that restores ended early."""
    effects = [
        effect
        for number, fault in enumerate(faults)
        if isinstance(fault, LastingFault)
        for effect in _effects_of(fault, (fault.at_us, number), topology)
    ]
    for number, fault in enumerate(faults):
        if isinstance(fault, Restore):
            for effect in effects:
                if effect.order < (fault.at_us, number) and _ends(fault, effect, topology):
                    effect.end(fault.at_us, fault.name)
    return effects


def _ends(restore: Restore, effect: LinkEffect, topology: Topology) -> bool:
    if isinstance(restore.what, str):
        return effect.fault.name == restore.what
    link = topology.link_between(restore.what)
    return link is not None and effect.link_direction[0] == link.name


def _effects_of(fault: LastingFault, order: Order, topology: Topology) -> Iterator[LinkEffect]:
    end = fault.at_us + fault.for_us if fault.for_us is not None else FOREVER_US
    for link_direction in _link_directions(fault, topology):
        if isinstance(fault, SetLink):
            yield LinkEffect(fault, order, link_direction, fault.at_us, end, values=fault.values())
        elif isinstance(fault, Flap):
            for start in range(fault.at_us, end, fault.down_us + fault.up_us):
                stop = min(start + fault.down_us, end)
                yield LinkEffect(fault, order, link_direction, start, stop, STATES[fault.mode])
        elif isinstance(fault, Outage):
            yield LinkEffect(fault, order, link_direction, fault.at_us, end, STATES[fault.mode])


def _link_directions(fault: LastingFault, topology: Topology) -> list[LinkDirection]:
    """The directions of links that a fault acts on."""
    if not isinstance(fault, (Outage, SetLink)):
        return []
    link_directions = []
    for link, leads_forward in _links(fault, topology):
        forward, backward = Direction.FORWARD, Direction.BACKWARD
        if not leads_forward:
            forward, backward = backward, forward
        if fault.direction != "backward":
            link_directions.append((link.name, forward))
        if fault.direction != "forward":
            link_directions.append((link.name, backward))
    return link_directions


def _links(fault: LastingFault, topology: Topology) -> list[tuple[Link, bool]]:
    """The links that a fault acts on, and whether the fault's forward direction is the link's."""
    if isinstance(fault, Isolate):
        others = [region for region in topology.regions if region != fault.region]
        return topology.cut_set([[fault.region], others])
    if isinstance(fault, Partition):
        return topology.cut_set(fault.groups)
    if isinstance(fault, (Cut, Flap, SetLink)) and (link := topology.link_between(fault.link)):
        return [(link, link.between[0] == fault.link[0])]
    return []


def _configured(topology: Topology) -> dict[LinkDirection, LinkParameters]:
    parameters_of = {}
    for link in topology.links:
        parameters_of[link.name, Direction.FORWARD] = link.forward_parameters
        parameters_of[link.name, Direction.BACKWARD] = link.backward_parameters
    return parameters_of


def _changes_of(
    link_direction: LinkDirection, configured: LinkParameters, effects: Sequence[LinkEffect]
) -> Iterator[LinkChange]:
    """Step through the instants at which effects on one link direction begin or end."""
    begins: defaultdict[int, list[LinkEffect]] = defaultdict(list)
    ends: defaultdict[int, list[LinkEffect]] = defaultdict(list)
    for effect in effects:
        begins[effect.start_us].append(effect)
        ends[effect.end_us].append(effect)
    active: list[LinkEffect] = []
    now = (LinkState.UP, configured)
    for at_us in sorted(begins.keys() | ends.keys()):
        active = [effect for effect in active if effect.end_us > at_us] + begins[at_us]
        before, now = now, _combined(configured, active)
        if now != before:
            begun = max(begins[at_us], key=lambda effect: effect.order).fault if begins[at_us] else None
            cause = _cause(begins[at_us], ends[at_us])
            when = None if begun is None else _trigger(begun)
            yield LinkChange(at_us, cause, *link_direction, *now, when=when)


def _combined(configured: LinkParameters, active: Sequence[LinkEffect]) -> tuple[LinkState, LinkParameters]:
    states = {effect.state for effect in active}
    state = next((s for s in (LinkState.DOWN, LinkState.BLACKHOLE) if s in states), LinkState.UP)
    values: dict[str, Any] = {}
    for effect in sorted(active, key=lambda effect: effect.order):
        values.update(effect.values)
    parameters = configured.with_values(values)
    return state, replace(parameters, jitter_us=min(parameters.jitter_us, parameters.delay_us))


def _cause(begun: Sequence[LinkEffect], ended: Sequence[LinkEffect]) -> str:
    if begun:
        return max(begun, key=lambda effect: effect.order).fault.name
    last = max(ended, key=lambda effect: effect.order)
    return last.ended_by or last.fault.name


Pair = tuple[str, str]  # from one process to another
Span = tuple[int, int | None, str, str]  # from, to (None: for good), who began it, who ends it


def separation_changes(faults: Sequence[Fault], duration_us: int) -> list[ProcessChange]:
    """The changes that separate processes of a region and rejoin them before `duration_us`, by time."""
    waiting = {fault.name: _trigger(fault) for fault in faults if isinstance(fault, Separate)}
    peers: defaultdict[tuple[int, str, str, ProcessAction], list[str]] = defaultdict(list)
    for (process, peer), spans in _spans(faults).items():
        for at_us, fault, action in _transitions(spans):
            if at_us < duration_us:
                peers[at_us, fault, process, action].append(peer)
    changes = [
        ProcessChange(
            *key,
            tuple(others),
            when=waiting[key[1]] if key[3] is ProcessAction.SEPARATE else None,
        )
        for key, others in peers.items()
    ]
    return sorted(changes, key=lambda change: change.at_us)


def block_changes(faults: Sequence[Fault], duration_us: int) -> list[ProcessChange]:
    """The changes that begin and end rules of blocks before `duration_us`, by time."""
    changes = []
    for fault in faults:
        if not isinstance(fault, Block):
            continue
        kept = [(fault.process, fault.others)] if fault.direction != "backward" else []
        if fault.direction != "forward":
            kept += [(other, (fault.process,)) for other in fault.others]
        rule = (fault.port, fault.name, fault.new, fault.refuse)
        for at_us, cause, begins in _begin_and_end(fault, faults, duration_us):
            action = ProcessAction.BLOCK if begins else ProcessAction.UNBLOCK
            changes += [ProcessChange(at_us, cause, name, action, peers, *rule) for name, peers in kept]
    return sorted(changes, key=lambda change: change.at_us)


def disk_changes(faults: Sequence[Fault], duration_us: int) -> list[ProcessChange]:
    """The changes that fill disks of processes or make them slow, and end that, before `duration_us`, by
    time.
    """
    changes = [
        ProcessChange(
            at_us,
            cause,
            fault.process,
            _DISK_ACTIONS[fault.kind][0 if begins else 1],
            rule=fault.name,
            slower_us=fault.sync_us if isinstance(fault, SlowDisk) and begins else None,
        )
        for fault in faults
        if isinstance(fault, DiskFault)
        for at_us, cause, begins in _begin_and_end(fault, faults, duration_us)
    ]
    return sorted(changes, key=lambda change: change.at_us)


def _begin_and_end(
    fault: LastingProcessFault, faults: Sequence[Fault], duration_us: int
) -> Iterator[tuple[int, str, bool]]:
    """When it begins and ends before `duration_us`, by which fault, and whether it begins there."""
    end_us, ended_by = _end(fault, faults)
    for at_us, cause, begins in ((fault.at_us, fault.name, True), (end_us, ended_by, False)):
        if at_us is not None and at_us < duration_us:
            yield at_us, cause, begins


def until_us(fault: LastingProcessFault, faults: Sequence[Fault]) -> int | None:
    """The time at which such a fault ends; None if it never does."""
    return _end(fault, faults)[0]


def _spans(faults: Sequence[Fault]) -> dict[Pair, list[Span]]:
    """The times at which each pair of processes is separated, by start."""
    found: defaultdict[Pair, list[Span]] = defaultdict(list)
    for fault in sorted((each for each in faults if isinstance(each, Separate)), key=lambda each: each.at_us):
        end_us, ended_by = _end(fault, faults)
        for other in fault.others:
            if fault.direction != "backward":
                found[fault.process, other].append((fault.at_us, end_us, fault.name, ended_by))
            if fault.direction != "forward":
                found[other, fault.process].append((fault.at_us, end_us, fault.name, ended_by))
    return dict(found)


def _end(fault: LastingProcessFault, faults: Sequence[Fault]) -> tuple[int | None, str]:
    """The time at which such a fault ends, and the fault that ends it."""
    ends = [(fault.at_us + fault.for_us, fault.name)] if fault.for_us is not None else []
    ends += [
        (each.at_us, each.name) for each in faults if isinstance(each, Restore) and each.what == fault.name
    ]
    if isinstance(fault, DiskFault):
        ends += [
            (each.at_us, each.name)
            for each in faults
            if isinstance(each, Replace) and each.process == fault.process and each.at_us > fault.at_us
        ]
    return min(ends, default=(None, fault.name))


def _transitions(spans: Sequence[Span]) -> Iterator[tuple[int, str, ProcessAction]]:
    """When a pair is separated and rejoined, and by which fault; adjacent spans are merged."""
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
