"""The effects of each fault of an experiment: what it does, where, and from when until when.

An effect keeps one link direction in a state, or sets some of its parameters, from one instant until another.
A `restore` ends what earlier faults (by time, then order in the file) do to a link, or everything that one
fault does. An effect with `for` ends by itself. `testbed.faults.timeline` combines overlapping effects;
`experiments.planned.strikes` decides from when on each fault's figures count.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.faults.environment import DiskFault, LastingProcessFault, Separate
from experiments.faults.fault import ExperimentFault
from experiments.faults.links import LinkFault, Restore
from experiments.faults.processes import Replace
from experiments.planned.changes import LinkDirectionName, LinkState, Selection
from topologies.model import Topology

LinkDirection = tuple[str, LinkDirectionName]  # one direction of the link of this name
Order = tuple[int, int]  # start time of a fault, and its number in the file
ProcessPair = tuple[str, str]  # from one process to another
EffectSpan = tuple[int, int | None, str, str]  # start, end (None: never), the faults that begin and end it


@dataclass(slots=True)
class LinkEffect:
    """The effect of one fault on one link direction, from `start_us` until just before `end_us`."""

    fault: ExperimentFault
    order: Order
    link_direction: LinkDirection
    start_us: int
    own_end_us: int  # if no restore ends it
    state: LinkState = LinkState.UP
    values: Mapping[str, Any] = field(default_factory=dict)
    selects: Selection | None = None  # the affected packets; None: all
    restores: dict[str, int] = field(default_factory=dict)  # the restores that would end it, and their times

    @property
    def end_us(self) -> int:
        """The time at which it ends."""
        return self.end_without("")

    @property
    def ended_by(self) -> str:
        """The restore that ends it early; "" if there is none."""
        return next((name for name, at_us in self.restores.items() if at_us == self.end_us), "")

    def end_without(self, restore: str) -> int:
        """Return the time at which it would end without the restore of this name."""
        others = (at_us for name, at_us in self.restores.items() if name != restore)
        return max(self.start_us, min(others, default=self.own_end_us))

    def end(self, at_us: int, restore: str) -> None:
        """Let a restore end the effect at `at_us` unless the effect ends earlier."""
        if at_us < self.own_end_us:
            self.restores[restore] = max(at_us, self.start_us)


def link_effects(faults: Sequence[ExperimentFault], topology: Topology) -> list[LinkEffect]:
    """Return the effects of all faults, including those that restores end early."""
    effects = [
        effect
        for number, fault in enumerate(faults)
        if isinstance(fault, LinkFault)
        for effect in _effects_of(fault, (fault.at_us, number), topology)
    ]
    for number, fault in enumerate(faults):
        if isinstance(fault, Restore):
            for effect in effects:
                if effect.order < (fault.at_us, number) and _ends(fault, effect, topology):
                    effect.end(fault.at_us, fault.name)
    return effects


def _ends(restore: Restore, effect: LinkEffect, topology: Topology) -> bool:
    link = topology.link(restore.what)
    ended = link is not None and effect.link_direction[0] == link.name
    return ended or effect.fault.name == restore.what


def _effects_of(fault: LinkFault, order: Order, topology: Topology) -> Iterator[LinkEffect]:
    for link_direction in _link_directions(fault, topology):
        for start_us, end_us in fault.periods():
            yield LinkEffect(
                fault, order, link_direction, start_us, end_us, fault.state, fault.values(), fault.selects
            )


def by_packets(
    effects: Iterable[LinkEffect],
) -> Iterator[tuple[LinkDirection, Selection | None, list[LinkEffect]]]:
    """Yield the effects on each link direction: on packets that no fault selects, then on each selection."""
    of_direction: defaultdict[LinkDirection, list[LinkEffect]] = defaultdict(list)
    for effect in effects:
        of_direction[effect.link_direction].append(effect)
    for direction, found in of_direction.items():
        for selects in dict.fromkeys((None, *(each.selects for each in found))):
            yield direction, selects, [each for each in found if each.selects in {None, selects}]


def _link_directions(fault: LinkFault, topology: Topology) -> Iterator[LinkDirection]:
    """Yield the directions of links that a fault acts on."""
    for link, leads_forward in fault.links(topology):
        forward, backward = LinkDirectionName.FORWARD, LinkDirectionName.BACKWARD
        if not leads_forward:
            forward, backward = backward, forward
        if fault.direction != "backward":
            yield link.name, forward
        if fault.direction != "forward":
            yield link.name, backward


def separations(faults: Sequence[ExperimentFault]) -> dict[ProcessPair, list[EffectSpan]]:
    """Return the periods in which each ordered pair of processes is separated, by start."""
    found: defaultdict[ProcessPair, list[EffectSpan]] = defaultdict(list)
    for fault in sorted((each for each in faults if isinstance(each, Separate)), key=lambda each: each.at_us):
        end_us, ended_by = ending(fault, faults)
        for other in fault.others:
            if fault.direction != "backward":
                found[fault.process, other].append((fault.at_us, end_us, fault.name, ended_by))
            if fault.direction != "forward":
                found[other, fault.process].append((fault.at_us, end_us, fault.name, ended_by))
    return dict(found)


def ending(fault: LastingProcessFault, faults: Sequence[ExperimentFault]) -> tuple[int | None, str]:
    """Return the time at which such a fault ends (None: never), and the fault that ends it."""
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
