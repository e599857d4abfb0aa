"""Compiles an experiment's faults into the changes that a run applies, and combines overlapping ones.

Every fault on links becomes *effects* (`experiments.planned.effects`). The rule for each link direction at
each instant:

- it is up unless an active effect changes that; `down` outweighs `blackhole`;
- each parameter is that of the latest active `set` that gives it (by time, then by the order in the file),
  else the topology's; jitter never makes a packet leave before it arrives;
- `restore` ends all effects of earlier faults (by time, then order) on a link, or all effects of one fault.
  Effects on other links continue. A flapping link that is restored stays up;
- an effect with `for` ends by itself. Nothing changes after the run's duration.

Packets that a `set` selects have a separate state: effects on the link, then effects on these packets.
Only real differences become changes. A change carries the name of the fault that caused it: at the end of an
effect, that of the restore if there was one; if several faults meet in one instant, the last that begins
there. So the name labels a change; it does not determine whose figures begin with it
(`experiments.planned.strikes`).

A separation drops packets on the region's LAN from one process's host to another's. Several separations may
overlap: two processes can reach each other again when the last separation between them is over. Each change
is of one process and names the peers that no longer receive its packets; the other direction is a change of
the other process. A block has its own rule at each host whose packets it drops, so overlapping blocks add up,
and each ends by itself. The same holds for fills of one file system, for slow disks and for wrong clocks; a
replace gives another disk and ends the first two.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from experiments.faults.environment import Block, LastingProcessFault, Separate, StateFault
from experiments.faults.fault import ExperimentFault, TriggeredFault
from experiments.faults.links import FOREVER_US
from experiments.faults.processes import ProcessFault
from experiments.planned.changes import (
    LinkChange,
    LinkDirectionName,
    LinkState,
    ProcessAction,
    ProcessChange,
    Selection,
    Trigger,
)
from experiments.planned.effects import (
    EffectSpan,
    LinkDirection,
    LinkEffect,
    by_packets,
    ending,
    link_effects,
    separations,
)
from experiments.planned.plan import FaultPlan
from experiments.planned.strikes import strikes
from topologies.link_parameters import LinkParameters
from topologies.model import Topology


def link_changes(faults: Sequence[ExperimentFault], topology: Topology, duration_us: int) -> list[LinkChange]:
    """Return every change of a link's state or parameters, by time."""
    lasting = (each for each in link_effects(faults, topology) if each.start_us < each.end_us)
    parameters_of = _configured(topology)
    changes = [
        change
        for link_direction, selects, effects in by_packets(lasting)
        for change in _changes_of(link_direction, parameters_of[link_direction], effects, selects)
    ]
    positions = {link_direction: number for number, link_direction in enumerate(parameters_of)}
    changes = [change for change in changes if change.at_us < duration_us]
    return sorted(changes, key=lambda change: (change.at_us, positions[change.link, change.direction]))


def trigger_conflict(faults: Sequence[ExperimentFault], topology: Topology) -> str | None:
    """Return why a waiting fault conflicts with another one, or None.

    While a fault waits, no other fault may act on the same link direction or separate the same processes,
    because the state would be unknown.
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
    for (process, peer), spans in separations(faults).items():
        for begin_us, end_us, name, _ in (each for each in spans if each[2] in waiting):
            for its_begin_us, its_end_us, its_name, _ in spans:
                ended = (FOREVER_US if each is None else each for each in (end_us, its_end_us))
                ends_us = tuple(ended)
                if name != its_name and its_begin_us <= ends_us[0] and begin_us <= ends_us[1]:
                    return f"{name} waits, and {its_name} keeps {process} from {peer} meanwhile"
    return None


def process_changes(faults: Sequence[ExperimentFault], duration_us: int) -> list[ProcessChange]:
    """Return every change of processes, of their peers, disks and clocks, by time."""
    changes = [
        *_single_changes(faults),
        *_separation_changes(faults, duration_us),
        *_block_changes(faults, duration_us),
        *_state_changes(faults, duration_us),
    ]
    return sorted(changes, key=lambda change: change.at_us)


def _single_changes(faults: Sequence[ExperimentFault]) -> Iterator[ProcessChange]:
    """Yield the changes of faults that do not end by themselves."""
    for fault in faults:
        if isinstance(fault, ProcessFault) and not isinstance(fault, LastingProcessFault):
            action = ProcessAction(fault.kind)
            yield ProcessChange(
                fault.at_us, fault.name, fault.process, action, when=_trigger(fault), **fault.details()
            )


def _trigger(fault: ExperimentFault) -> Trigger | None:
    when = fault.when if isinstance(fault, TriggeredFault) else None
    return None if when is None else Trigger(when.process, when.sends, when.times)


def fault_plans(faults: Sequence[ExperimentFault], topology: Topology, duration_us: int) -> list[FaultPlan]:
    """Return the faults as configured, by time, each with its strike, and its end if it is within the run."""
    ends: defaultdict[str, int] = defaultdict(int)
    for effect in link_effects(faults, topology):
        ends[effect.fault.name] = max(ends[effect.fault.name], effect.end_us)
    for fault in faults:
        if isinstance(fault, LastingProcessFault) and (end_us := ending(fault, faults)[0]) is not None:
            ends[fault.name] = end_us
    struck = strikes(faults, topology, duration_us)
    plans = [
        FaultPlan(
            name=fault.name,
            kind=fault.kind,
            target=fault.target,
            at_us=fault.at_us,
            until_us=ends[fault.name] if fault.name in ends and ends[fault.name] < duration_us else None,
            strike=struck[fault.name],
        )
        for fault in faults
    ]
    return sorted(plans, key=lambda plan: plan.at_us)


def _configured(topology: Topology) -> dict[LinkDirection, LinkParameters]:
    parameters_of = {}
    for link in topology.links:
        parameters_of[link.name, LinkDirectionName.FORWARD] = link.forward_parameters
        parameters_of[link.name, LinkDirectionName.BACKWARD] = link.backward_parameters
    return parameters_of


def _changes_of(
    link_direction: LinkDirection,
    configured: LinkParameters,
    effects: Sequence[LinkEffect],
    selects: Selection | None,
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
            yield LinkChange(at_us, cause, *link_direction, *now, when, selects)


def _combined(configured: LinkParameters, active: Sequence[LinkEffect]) -> tuple[LinkState, LinkParameters]:
    states = {effect.state for effect in active}
    state = next((s for s in (LinkState.DOWN, LinkState.BLACKHOLE) if s in states), LinkState.UP)
    values: dict[str, Any] = {}
    for effect in sorted(active, key=lambda effect: effect.order):
        values.update(effect.values)
    parameters = configured.with_values(values)
    return state, replace(parameters, jitter_us=min(parameters.jitter_us, parameters.jitter_us_most))


def _cause(begun: Sequence[LinkEffect], ended: Sequence[LinkEffect]) -> str:
    if begun:
        return max(begun, key=lambda effect: effect.order).fault.name
    last = max(ended, key=lambda effect: effect.order)
    return last.ended_by or last.fault.name


def _separation_changes(faults: Sequence[ExperimentFault], duration_us: int) -> Iterator[ProcessChange]:
    """Yield the changes that separate and rejoin processes of a region before `duration_us`."""
    waiting = {fault.name: _trigger(fault) for fault in faults if isinstance(fault, Separate)}
    peers: defaultdict[tuple[int, str, str, ProcessAction], list[str]] = defaultdict(list)
    for (process, peer), spans in separations(faults).items():
        for at_us, fault, action in _transitions(spans):
            if at_us < duration_us:
                peers[at_us, fault, process, action].append(peer)
    for key, others in peers.items():
        when = waiting[key[1]] if key[3] is ProcessAction.SEPARATE else None
        yield ProcessChange(*key, tuple(others), when=when)


def _block_changes(faults: Sequence[ExperimentFault], duration_us: int) -> Iterator[ProcessChange]:
    """Yield the changes that begin and end rules of blocks before `duration_us`."""
    for fault in faults:
        if not isinstance(fault, Block):
            continue
        for at_us, cause, begins in _begin_and_end(fault, faults, duration_us):
            action = ProcessAction.BLOCK if begins else ProcessAction.UNBLOCK
            for name in fault.struck:
                peers = fault.others if name == fault.process else (fault.process,)
                yield ProcessChange(at_us, cause, name, action, peers, **fault.details())


def _state_changes(faults: Sequence[ExperimentFault], duration_us: int) -> Iterator[ProcessChange]:
    """Yield the changes that begin and end full and slow disks and wrong clocks before `duration_us`."""
    for fault in faults:
        if isinstance(fault, StateFault):
            for at_us, cause, begins in _begin_and_end(fault, faults, duration_us):
                action = ProcessAction(fault.kind if begins else f"un{fault.kind}")
                details = fault.details() if begins else {}
                yield ProcessChange(at_us, cause, fault.process, action, rule=fault.name, **details)


def _begin_and_end(
    fault: LastingProcessFault, faults: Sequence[ExperimentFault], duration_us: int
) -> Iterator[tuple[int, str, bool]]:
    """Yield when a fault begins and ends before `duration_us`, by which fault, and whether it begins."""
    end_us, ended_by = ending(fault, faults)
    for at_us, cause, begins in ((fault.at_us, fault.name, True), (end_us, ended_by, False)):
        if at_us is not None and at_us < duration_us:
            yield at_us, cause, begins


def _transitions(spans: Sequence[EffectSpan]) -> Iterator[tuple[int, str, ProcessAction]]:
    """Yield when a pair is separated and rejoined, and by which fault; adjacent spans are merged."""
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
