"""The schedule of arrivals and departures that a seed gives.

It is computed before the run from the seed alone, in order of time. Processes that arrive are absent at the
start. Departures draw among the processes present at that time, or end each process's lifetime; if none is
present, none leaves. Processes on which the experiment's own faults act are excluded.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from experiments.churn import COUNT_MAX, Arrivals, Churn, Departures
from experiments.planned.changes import ProcessAction, ProcessChange
from experiments.planned.plan import ChurnPlan
from experiments.roles import RoleCounts, counts_in

_ENDS = {"leave": ProcessAction.LEAVE, "crash": ProcessAction.KILL}


@dataclass(frozen=True, slots=True)
class ChurnSchedule:
    """All changes, and the summary of each group."""

    changes: tuple[ProcessChange, ...] = ()
    groups: tuple[ChurnPlan, ...] = ()

    @property
    def processes(self) -> frozenset[str]:
        """The processes that arrive or leave."""
        return frozenset(change.process for change in self.changes)


def candidates(churn: Churn, roles: Mapping[str, RoleCounts], regions: Sequence[str]) -> list[str]:
    """Return the processes of the group's role in its regions, in the plan's order."""
    return [
        f"{region}/{churn.role}-{index}"
        for region in regions
        if not churn.regions or region in churn.regions
        for index in range(counts_in(roles, region).get(churn.role, 0))
    ]


def churn_schedule(
    arrivals: Sequence[Arrivals],
    departures: Sequence[Departures],
    roles: Mapping[str, RoleCounts],
    regions: Sequence[str],
    duration_us: int,
    *,
    spared: frozenset[str],
    seed: int,
) -> ChurnSchedule:
    """Return the changes that this seed gives. Pure: the same arguments give the same changes."""
    if not arrivals and not departures:
        return ChurnSchedule()
    drawing = _Drawing(duration_us, seed)
    for each in arrivals:
        free = [name for name in candidates(each, roles, regions) if name not in spared]
        drawing.add_arrivals(each, free)
    for one in departures:
        drawing.add_departures(one, [n for n in candidates(one, roles, regions) if n not in spared])
    drawing.run()
    changes = tuple(sorted(drawing.changes, key=lambda change: change.at_us))
    return ChurnSchedule(changes, tuple(_summary(each, changes) for each in (*arrivals, *departures)))


def _summary(churn: Churn, changes: Sequence[ProcessChange]) -> ChurnPlan:
    own = [change for change in changes if change.fault == churn.name]
    ends = set(_ENDS.values())
    counted = [change for change in own if churn.kind == "arrivals" or change.action in ends]
    where = f" of {' '.join(churn.regions)}" if churn.regions else ""
    times = [change.at_us for change in own]
    return ChurnPlan(
        churn.name,
        "arrivals" if isinstance(churn, Arrivals) else "departures",
        f"{len(counted)} {churn.role}{where}: {churn}",
        len(counted),
        len(own) - len(counted),
        min(times, default=churn.from_us),
        max(times, default=churn.from_us),
    )


@dataclass(frozen=True, slots=True, order=True)
class _Due:
    """A due action. number: in order of planning. process: "" for one drawn at random. generation: the
    process generation it applies to, 0 for any.
    """

    at_us: int
    number: int
    group: str
    action: ProcessAction
    process: str = ""
    generation: int = 0


@dataclass(slots=True, eq=False)
class _Going:
    """A group of departures: its candidates, and those of them that have a lifetime."""

    churn: Departures
    among: list[str]
    mortal: frozenset[str]
    rng: Random


@dataclass(slots=True)
class _Drawing:
    """Simulation of arrivals and departures over the run. generations: starts of each process so far."""

    duration_us: int
    seed: int
    changes: list[ProcessChange] = field(default_factory=list)
    newcomers: set[str] = field(default_factory=set)
    going: dict[str, _Going] = field(default_factory=dict)
    there: set[str] = field(default_factory=set)
    generations: dict[str, int] = field(default_factory=dict)
    planned: int = 0
    agenda: list[_Due] = field(default_factory=list)

    def add_arrivals(self, churn: Arrivals, among: Sequence[str]) -> None:
        """Choose the processes that arrive, and when."""
        rng = self._rng(churn)
        free = [name for name in among if name not in self.newcomers]
        times = churn.times_us(rng, self.duration_us, len(free))
        chosen = rng.sample(free, len(times))
        self.newcomers.update(chosen)
        for at_us, name in zip(times, chosen, strict=True):
            self._plan(at_us, churn.name, ProcessAction.JOIN, name)

    def add_departures(self, churn: Departures, among: list[str]) -> None:
        """Choose the times of departures, or the processes that have a lifetime."""
        rng = self._rng(churn)
        count = len(among) if churn.count is None else min(churn.count, len(among))
        mortal = frozenset(rng.sample(among, count)) if churn.lifetime is not None else frozenset()
        going = _Going(churn, among, mortal, rng)
        self.going[churn.name] = going
        if churn.lifetime is None:
            most = len(among) if churn.away is None else COUNT_MAX
            for at_us in churn.times_us(rng, self.duration_us, most):
                self._plan(at_us, churn.name, _ENDS[churn.how])

    def run(self) -> None:
        """Execute all planned arrivals and departures in order of time."""
        for name in dict.fromkeys(name for going in self.going.values() for name in going.among):
            if name not in self.newcomers:
                self._began(name, 0)
        while self.agenda:
            due = heapq.heappop(self.agenda)
            if due.action in (ProcessAction.JOIN, ProcessAction.RESTART):
                self.changes.append(ProcessChange(due.at_us, due.group, due.process, due.action))
                self._began(due.process, due.at_us)
            else:
                self._end(due, self.going[due.group])

    def _began(self, name: str, at_us: int) -> None:
        self.there.add(name)
        self.generations[name] = self.generations.get(name, 0) + 1
        for going in self.going.values():
            lifetime = going.churn.lifetime
            if lifetime is not None and name in going.mortal:
                end_us = max(at_us, going.churn.from_us) + lifetime.drawn_us(going.rng)
                if end_us <= (going.churn.to_us or self.duration_us):
                    how = _ENDS[going.churn.how]
                    self._plan(end_us, going.churn.name, how, name, self.generations[name])

    def _end(self, due: _Due, going: _Going) -> None:
        """Let one process leave: the given one if its generation is unchanged, or one drawn at random."""
        at_us, name = due.at_us, due.process
        if not name:
            there = [each for each in going.among if each in self.there]
            if not there:
                return
            name = going.rng.choice(there)
        elif name not in self.there or self.generations[name] != due.generation:
            return
        self.there.remove(name)
        self.changes.append(ProcessChange(at_us, going.churn.name, name, _ENDS[going.churn.how]))
        if going.churn.away is not None:
            back_us = at_us + going.churn.away.drawn_us(going.rng)
            self._plan(back_us, going.churn.name, ProcessAction.RESTART, name)

    def _plan(
        self, at_us: int, group: str, action: ProcessAction, process: str = "", generation: int = 0
    ) -> None:
        if at_us < self.duration_us:
            self.planned += 1
            heapq.heappush(self.agenda, _Due(at_us, self.planned, group, action, process, generation))

    def _rng(self, churn: Churn) -> Random:
        return Random(f"churn {self.seed} {churn.kind} {churn.name}")  # noqa: S311  must be reproducible
