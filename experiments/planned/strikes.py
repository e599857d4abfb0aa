"""The time and place from which each fault's figures count: its *strike*.

A fault strikes as soon as a link direction behaves as the fault specifies:

- an outage strikes when it begins, even if another outage already blocks packets;
- a `set` strikes when packets cross and one of its values is in effect: not while an outage or a later `set`
  of the same parameter hides it;
- a `restore` strikes when the link behaves differently than without it: not while another fault has the same
  effect;
- a fault on processes strikes them when it begins.

The first instant of this on any link is the fault's instant. Links that it reaches later, because another
fault hid it there, are not part of its strike. A fault that strikes nothing has no figures. Faults with the
same strike have the same figures: see `strike_problems`.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from experiments.faults.environment import LastingProcessFault, Separate
from experiments.faults.fault import ExperimentFault, TriggeredFault
from experiments.faults.links import FOREVER_US, LinkFault, Outage, Restore
from experiments.faults.processes import ProcessFault
from experiments.planned.changes import LinkDirectionName
from experiments.planned.effects import (
    LinkDirection,
    LinkEffect,
    by_packets,
    ending,
    link_effects,
    separations,
)
from experiments.planned.plan import Strike
from topologies.model import Topology
from topologies.quantities import DURATION

State = Mapping[str, Any] | None  # the values that faults set; None: no packet crosses
Begins = dict[str, dict[LinkDirection, int]]  # by fault: the link directions and start times


def strikes(
    faults: Sequence[ExperimentFault], topology: Topology, duration_us: int = FOREVER_US
) -> dict[str, Strike]:
    """Return the strike of each fault by name; one at or after `duration_us` has no place."""
    begins: Begins = defaultdict(dict)
    for direction, _, effects in by_packets(link_effects(faults, topology)):
        for name, at_us in _begins_on(effects):
            begins[name].setdefault(direction, at_us)
    found = {}
    for fault in faults:
        at_us, processes = _struck_processes(fault, faults)
        mine = begins.get(fault.name, {})
        at_us = min(mine.values(), default=at_us)
        if at_us >= duration_us:
            found[fault.name] = Strike(fault.at_us)
            continue
        first = sorted(direction for direction, begin_us in mine.items() if begin_us == at_us)
        found[fault.name] = Strike(at_us, tuple(first), processes)
    return found


def strike_problems(
    faults: Sequence[ExperimentFault], topology: Topology, duration_us: int, asked: Container[str]
) -> Iterator[tuple[int, str]]:
    """Yield the faults without figures of their own, by number, and why.

    A fault may never act before `duration_us`, or no figure may distinguish it from another fault. asked:
    names of faults in expectations; others may lack figures.
    """
    struck = strikes(faults, topology, duration_us)
    for number, fault in enumerate(faults):
        mine = struck[fault.name]
        if not mine.directions and not mine.processes:
            if fault.name in asked:
                yield number, _idle(fault, faults, topology)
            continue
        for other in faults[:number]:
            if fault.name not in asked and other.name not in asked:
                continue
            if (where := _shared(fault, other, mine, struck[other.name])) is not None:
                yield number, _alike(fault, other, mine, where)


def _begins_on(effects: Sequence[LinkEffect]) -> Iterator[tuple[str, int]]:
    """Yield each fault and restore that acts on one link direction with its start, the earliest first."""
    ends = {at_us for effect in effects for at_us in (effect.own_end_us, *effect.restores.values())}
    starting: defaultdict[int, list[LinkEffect]] = defaultdict(list)
    for effect in effects:
        starting[effect.start_us].append(effect)
    begun: list[LinkEffect] = []
    for at_us in sorted(starting.keys() | ends):
        begun = [effect for effect in begun if effect.own_end_us > at_us] + starting[at_us]
        begun.sort(key=lambda effect: effect.order)
        active = [effect for effect in begun if effect.end_us > at_us]
        state = _state(active)
        for effect in active:
            if effect.start_us == at_us and isinstance(effect.fault, Outage):
                yield effect.fault.name, at_us
            if state is not None and any(state[name] == value for name, value in effect.values.items()):
                yield effect.fault.name, at_us
        freed = [effect for effect in begun if effect.end_us <= at_us]
        for restore in dict.fromkeys(name for effect in freed for name in effect.restores):
            without = [effect for effect in begun if effect.end_without(restore) > at_us]
            if _state(without) != state and state is not None:
                yield restore, at_us


def _state(active: Iterable[LinkEffect]) -> State:
    """Return the combined state of effects on one link direction, in their order."""
    values: dict[str, Any] = {}
    for effect in active:
        if isinstance(effect.fault, Outage):
            return None
        values.update(effect.values)
    return values


def _struck_processes(
    fault: ExperimentFault, faults: Sequence[ExperimentFault]
) -> tuple[int, tuple[str, ...]]:
    """Return the time at which a fault strikes processes, and which; none for a fault on links."""
    if isinstance(fault, Restore):
        ended = next((each for each in faults if each.name == fault.what), None)
        return (
            _rejoined(fault, ended, faults) if isinstance(ended, LastingProcessFault) else (fault.at_us, ())
        )
    if not isinstance(fault, ProcessFault):
        return fault.at_us, ()
    return fault.at_us, fault.struck


def _rejoined(
    restore: Restore, ended: LastingProcessFault, faults: Sequence[ExperimentFault]
) -> tuple[int, tuple[str, ...]]:
    """Return the strike of a restore of a process fault: when no other fault still separates them."""
    if ending(ended, faults) != (restore.at_us, restore.name):
        return restore.at_us, ()
    _, processes = _struck_processes(ended, faults)
    if not isinstance(ended, Separate):
        return restore.at_us, processes
    until: dict[str, int] = {}
    for (process, _), spans in separations(faults).items():
        if any(name == ended.name for _, _, name, _ in spans):
            at_us = restore.at_us
            for begin_us, end_us, name, _ in spans:
                if name != ended.name and begin_us <= at_us:
                    at_us = max(at_us, FOREVER_US if end_us is None else end_us)
            until[process] = min(at_us, until.get(process, FOREVER_US))
    first_us = min(until.values())
    if first_us == FOREVER_US:
        return restore.at_us, ()
    return first_us, tuple(process for process in processes if until.get(process) == first_us)


def _shared(fault: ExperimentFault, other: ExperimentFault, mine: Strike, theirs: Strike) -> str | None:
    """Return where two faults cannot be distinguished, or None."""
    same_start = mine.at_us == theirs.at_us and _waits(fault) == _waits(other)
    if not same_start or fault.mends is not other.mends:
        return None
    if _sets_values(fault) and _sets_values(other):
        both: tuple[LinkDirection, ...] = tuple(each for each in mine.directions if each in theirs.directions)
        return _text(both, ()) if both else None
    is_same = (mine.directions, mine.processes) == (theirs.directions, theirs.processes)
    return _text(mine.directions, mine.processes) if is_same else None


def _sets_values(fault: ExperimentFault) -> bool:
    return isinstance(fault, LinkFault) and bool(fault.values())


def _waits(fault: ExperimentFault) -> object:
    return fault.when if isinstance(fault, TriggeredFault) else None


def _alike(fault: ExperimentFault, other: ExperimentFault, strike: Strike, where: str) -> str:
    at = DURATION.format(strike.at_us)
    hidden = [each.name for each in (other, fault) if each.at_us < strike.at_us]
    before = f" ({' and '.join(hidden)} changes nothing before)" if hidden else ""
    merged = "write their values as one set, " if _sets_values(fault) else ""
    return (
        f"{other.name} and {fault.name} both act on {where} from {at} on{before}, and no figure tells them"
        f" apart: {merged}let one begin at another time or act elsewhere, or leave it out"
    )


def _idle(fault: ExperimentFault, faults: Sequence[ExperimentFault], topology: Topology) -> str:
    """Explain why a fault never acts."""
    message = f"{fault.name}: {fault.kind} {fault.target} would change nothing"
    effects = link_effects(faults, topology)
    own = [each for each in effects if each.fault is fault or fault.name in each.restores]
    hiding = dict.fromkeys(
        other.fault.name
        for mine in own
        for other in effects
        if other.link_direction == mine.link_direction and other.fault not in (mine.fault, fault)
        if other.start_us < mine.own_end_us and other.end_us > max(mine.start_us, fault.at_us)
    )
    if hiding:
        names = " and ".join(hiding)
        return f"{message} while {names} lasts: let it begin at another time or last longer, or leave it out"
    remedy = "nothing is left to end then" if isinstance(fault, Restore) else "a restore ends it at once"
    return f"{message} ({remedy}): let it happen at another time, or leave it out"


def _text(directions: Iterable[tuple[str, LinkDirectionName]], processes: Iterable[str]) -> str:
    """Return `a-b forward, b-c`: a link with both directions has no suffix."""
    of_link: defaultdict[str, list[LinkDirectionName]] = defaultdict(list)
    for link, direction in directions:
        of_link[link].append(direction)
    links = [name if len(found) > 1 else f"{name} {found[0]}" for name, found in of_link.items()]
    return ", ".join((*links, *processes))
