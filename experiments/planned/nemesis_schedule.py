"""The random faults of a seed: a schedule that is made before the run.

It depends only on the seed and consists of concrete named faults like those in a file: `cutset plan` shows
them, run.json stores them, and the seed reproduces them. Its limits make recovery possible:

- nothing is disturbed in the `quiet` time at the end: links are as configured, every process runs. With
  `stays: connected` links are lost permanently, but the others connect all regions;
- a process has one disturbance at a time, and the time `settle` before the next;
- at least one replica of a region's proxy is undisturbed and settled at any time, so that acknowledged data
  is never only where it can be lost. A proxy without replicas is therefore never disturbed;
- a process on which the experiment's own faults act is not disturbed, and neither is its region;
- a region loses power as a whole, and only while none of its processes is disturbed otherwise. Everything in
  its memory is then lost: acknowledged data survives if replicas are durable and keep their disks.
"""

import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from experiments.declared import Declared, Trait
from experiments.faults.fault import ExperimentFault
from experiments.faults.kinds import Faults
from experiments.faults.processes import ProcessFault
from experiments.nemesis import (
    LOSING_LINKS,
    MEMORY_BYTES_MIN,
    ON_LINKS,
    ON_REGIONS,
    STEP_US,
    Kind,
    LosableLinks,
    Nemesis,
)
from experiments.roles import RoleCounts, counts_in
from topologies.model import Link, Topology
from topologies.quantities import OFFSET

ATTEMPTS = 50  # to place a fault; after that it is dropped
FLAPS_MAX = 5  # cuts in one disturbance
PER_MILLE = 1_000

Given = dict[str, Any]  # a fault in the form of a file, except `at` in microseconds


def expand(
    nemesis: Nemesis,
    roles: Mapping[str, RoleCounts],
    topology: Topology,
    duration_us: int,
    *,
    declared: Declared,
    others: Sequence[ExperimentFault] = (),
    spared: Collection[str] = (),
    seed: int,
) -> tuple[ExperimentFault, ...]:
    """Return the faults of a seed by time. Pure: the same arguments give the same faults.

    declared: the system's roles. others: the experiment's own faults. spared: further processes to leave
    alone.
    """
    spared = {*spared, *(fault.process for fault in others if isinstance(fault, ProcessFault))}
    chosen = victims(nemesis.roles or all_roles(declared), roles, topology, spared, declared)
    regions = regions_of(roles, topology, spared)
    losable = LosableLinks(topology, others) if nemesis.stays else None
    last_us = duration_us - nemesis.quiet_us
    rng = random.Random(f"nemesis {seed}")  # noqa: S311  reproducible, not secret
    schedule = _Schedule(nemesis, declared, topology, losable, chosen, regions, last_us, rng)
    written = sorted(schedule.faults(), key=lambda given: given["at"])
    return _reader().validate_python([{**given, "at": _text(given["at"])} for given in written])


@cache
def _reader() -> TypeAdapter[tuple[ExperimentFault, ...]]:
    """Return the parser of faults in the form of a file; cached, because it is slow to build."""
    return TypeAdapter(Faults)


@dataclass(slots=True)
class _Schedule:
    """The random generation of one schedule. taken: when processes are disturbed or not settled."""

    nemesis: Nemesis
    declared: Declared
    topology: Topology
    losable: LosableLinks | None
    victims: Mapping[str, Sequence[Sequence[str]]]
    regions: Mapping[str, Sequence[str]]
    last_us: int
    rng: random.Random
    taken: defaultdict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def faults(self) -> Iterator[Given]:
        """Yield all faults in the order in which they are drawn."""
        least, most = self.nemesis.count_range
        count = least if least == most else self.rng.randint(least, most)
        for number in range(1, count + 1):
            if not (kinds := self._possible()):
                return
            kind = self.rng.choice(kinds)
            name = f"n{number:02}-{kind}"
            if kind in ON_LINKS:
                yield from self._on_link(kind, name)
            elif kind in ON_REGIONS:
                yield from self._on_region(kind, name)
            else:
                yield from self._on_process(kind, name)

    @property
    def _links(self) -> Sequence[Link]:
        return self.topology.links if self.losable is None else self.losable.left

    def _possible(self) -> list[Kind]:
        """Return the kinds that can be drawn."""
        links = bool(self._links)
        losing = links if self.losable is None else bool(self.losable.losable)
        processes = any(self.victims.values())

        def can_be(kind: Kind) -> bool:
            if kind in ON_REGIONS:
                return bool(self.regions)
            return losing if kind in LOSING_LINKS else links if kind in ON_LINKS else processes

        return [kind for kind in self.nemesis.kinds if can_be(kind)]

    def _on_link(self, kind: Kind, name: str) -> Iterator[Given]:
        if kind == "flap":
            yield self._flap(name)
        elif self.losable is not None and kind in LOSING_LINKS:
            yield self._lost(kind, name, self.losable)
        else:
            yield self._for_a_time(kind, name)

    def _flap(self, name: str) -> Given:
        """Return a flap: a link that is cut repeatedly and ends up."""
        rng, nemesis = self.rng, self.nemesis
        link = rng.choice(self._links)
        window_us = self.last_us - nemesis.start_us
        longest_us = min(nemesis.longest_us, window_us)
        down_us, up_us = (self._length(longest_us) for _ in range(2))
        times = rng.randint(1, max(1, min(FLAPS_MAX, window_us // (down_us + up_us))))
        length_us = min(times * (down_us + up_us), window_us)
        return {
            "name": name,
            "at": self._begin(length_us),
            "flap": self.topology.reference(link),
            "down": _text(down_us),
            "up": _text(up_us),
            "for": _text(length_us),
        }

    def _lost(self, kind: Kind, name: str, links: LosableLinks) -> Given:
        """Return a permanent cut that leaves all regions connected."""
        link = self.rng.choice(links.losable)
        links.lose(link)
        direction = "both" if kind == "cut" else self.rng.choice(["forward", "backward"])
        cut = self.topology.reference(link)
        return {"name": name, "at": self._begin(0), "cut": cut, "direction": direction}

    def _for_a_time(self, kind: Kind, name: str) -> Given:
        rng, nemesis = self.rng, self.nemesis
        chosen = rng.choice(self.topology.links)
        link = self.topology.reference(chosen)
        begin_us, end_us = self._span()
        given = {"name": name, "at": begin_us, "for": _text(end_us - begin_us)}
        direction = "both" if kind == "cut" else rng.choice(["forward", "backward"])
        if kind in LOSING_LINKS:
            return {**given, "cut": link, "direction": direction}
        processes = [each for region in chosen.between for each in self.regions.get(region, ())]
        process, port = nemesis.selection(rng, processes)
        given |= {"set": link, "direction": direction}
        given |= ({"of": process} if process else {}) | ({"port": port} if port else {})
        if kind == "delay":
            delay_us = rng.randint(1, max(1, nemesis.delay_us // STEP_US)) * STEP_US
            return {**given, "delay": _text(delay_us)}
        share = rng.randint(1, max(1, round(nemesis.loss * PER_MILLE)))
        return {**given, kind: f"{share / 10:g}%"}

    def _on_process(self, kind: Kind, name: str) -> Iterator[Given]:
        """Yield a disturbance of a process and its end, within the limits."""
        for _ in range(ATTEMPTS):
            role = self.rng.choice(list(self.victims))
            group = self.rng.choice(self.victims[role])
            process = self.rng.choice(group)
            begin_us, end_us = self._span()
            if kind == "clock":
                given = self._clock(name, process, begin_us, end_us)
                end_us += abs(OFFSET.parse_whole(given["offset"]))  # a clock that was set back catches up
                if end_us > self.last_us:
                    continue
            if self._fits(role, group, process, (begin_us, end_us + self.nemesis.settle_us)):
                if kind == "clock":
                    yield given
                    return
                if kind == "throttle":
                    share = f"{self.rng.randint(*self.nemesis.processor_per_mille) / 10:g}%"
                    length = _text(end_us - begin_us)
                    yield {"name": name, "at": begin_us, "for": length, "throttle": process, "cpu": share}
                    return
                if kind == "memory":
                    limit = f"{self.rng.randint(MEMORY_BYTES_MIN, self.nemesis.memory_bytes)}B"
                    length = f"{end_us - begin_us - 1}us"  # the limit ends before the restart
                    yield {"name": name, "at": begin_us, "for": length, "throttle": process, "memory": limit}
                    yield {"name": f"{name}-kill", "at": end_us, "kill": process}
                    yield {"name": f"{name}-end", "at": end_us, "restart": process}
                    return
                first, then = ("kill", "restart") if kind == "crash" else ("stop", "continue")
                yield {"name": name, "at": begin_us, first: process}
                yield {"name": f"{name}-end", "at": end_us, then: process}
                return

    def _clock(self, name: str, process: str, begin_us: int, end_us: int) -> Given:
        """Return a clock that is set forward or back for a time."""
        set_us = self.rng.randint(1, self.nemesis.offset_us // STEP_US) * STEP_US
        offset = self.rng.choice(["", "-"]) + _text(set_us)
        length = _text(end_us - begin_us)
        return {"name": name, "at": begin_us, "for": length, "clock": process, "offset": offset}

    def _on_region(self, kind: Kind, name: str) -> Iterator[Given]:
        """Yield a power loss and its end. Links drop packets silently, so that no connection is reset."""
        for _ in range(ATTEMPTS):
            region = self.rng.choice(list(self.regions))
            begin_us, end_us = self._span()
            taken = (begin_us, end_us + self.nemesis.settle_us)
            processes = self.regions[region]
            if any(overlap(taken, other) for process in processes for other in self.taken[process]):
                continue
            yield {"name": name, "at": begin_us, "for": _text(end_us - begin_us), "isolate": region}
            again = "restart" if kind == "power" else "replace"
            for process in processes:
                self.taken[process].append(taken)
                one = f"{name}-{process.partition('/')[2]}"
                yield {"name": one, "at": begin_us, "kill": process}
                yield {"name": f"{one}-end", "at": end_us, again: process}
            return

    def _fits(self, role: str, group: Sequence[str], process: str, span: tuple[int, int]) -> bool:
        """Reserve this span for the process if the limits allow it."""
        spare = len(group) - 1 if self.declared.has(role, Trait.REPLICATED) else len(group)
        free = not any(overlap(span, other) for other in self.taken[process])
        if not free or self._most_at_once(group, span) >= spare:
            return False
        self.taken[process].append(span)
        return True

    def _most_at_once(self, processes: Sequence[str], span: tuple[int, int]) -> int:
        """Return the largest number of these processes that are disturbed at one instant of the span."""
        spans = [taken for process in processes for taken in self.taken[process]]
        instants = [span[0], *(begin for begin, _ in spans if span[0] < begin < span[1])]
        return max(sum(begin <= at_us < end for begin, end in spans) for at_us in instants)

    def _span(self) -> tuple[int, int]:
        """Draw the start and end of a disturbance, in whole steps."""
        nemesis = self.nemesis
        longest_us = min(nemesis.longest_us, self.last_us - nemesis.start_us)
        length_us = self._length(longest_us)
        begin_us = self._begin(length_us)
        return begin_us, begin_us + length_us

    def _length(self, longest_us: int) -> int:
        shortest_us = self.nemesis.shortest_us
        return self.rng.randint(-(-shortest_us // STEP_US), longest_us // STEP_US) * STEP_US

    def _begin(self, length_us: int) -> int:
        """Draw the start of a disturbance of this length."""
        latest_us = self.last_us - length_us
        return self.rng.randint(-(-self.nemesis.start_us // STEP_US), latest_us // STEP_US) * STEP_US


def all_roles(declared: Declared) -> list[str]:
    """Return servers, then subscribers, publishers, and others.

    The meaning of a seed depends on this order.
    """
    order = (Trait.SERVER, Trait.SUBSCRIBER, Trait.PUBLISHER)

    def place(role: str) -> int:
        return next((number for number, trait in enumerate(order) if declared.has(role, trait)), len(order))

    return sorted(declared.roles, key=place)


def victims(
    chosen_roles: Sequence[str],
    roles: Mapping[str, RoleCounts],
    topology: Topology,
    spared: Collection[str],
    declared: Declared,
) -> dict[str, list[list[str]]]:
    """Return the processes that may be disturbed, by role and region. spared: those that may not."""
    found: dict[str, list[list[str]]] = {}
    for role in chosen_roles:
        groups = [
            [f"{region}/{role}-{index}" for index in range(counts_in(roles, region).get(role, 0))]
            for region in topology.regions
        ]
        left = [[process for process in group if process not in spared] for group in groups]
        fewest = 2 if declared.has(role, Trait.REPLICATED) else 1
        if chosen := [group for group in left if len(group) >= fewest]:
            found[role] = chosen
    return found


def regions_of(
    roles: Mapping[str, RoleCounts], topology: Topology, spared: Collection[str]
) -> dict[str, list[str]]:
    """Return all processes of each region that may lose power."""
    found = {
        region: [
            f"{region}/{role}-{index}"
            for role, count in counts_in(roles, region).items()
            for index in range(count)
        ]
        for region in topology.regions
    }
    return {region: names for region, names in found.items() if names and not set(spared) & set(names)}


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether two spans of time have an instant in common."""
    return one[0] < other[1] and other[0] < one[1]


def _text(us: int) -> str:
    return f"{us // STEP_US}ms"
