"""Which process comes and goes when: the changes that a seed makes of `arrivals:` and `departures:`.

Made before anything starts, in order of time, from the seed alone. Arrivals take processes that are then not
there from the beginning. Departures draw among those that are there at the time, or end each one's lifetime;
where nobody is left to go, nobody goes. Processes that the experiment's own faults act on are left alone.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from experiments.churn import COUNT_MAX, Arrivals, Churn, Departures
from experiments.planned.changes import ProcessAction, ProcessChange
from experiments.planned.plan import ChurnPlan
from experiments.roles import RoleCounts, counts_in

_ENDS = {"leave": ProcessAction.LEAVE, "crash": ProcessAction.KILL}


@dataclass(frozen=True, slots=True)
class ChurnSchedule:
    """All of it, and what it comes to by group."""

    changes: tuple[ProcessChange, ...] = ()
    groups: tuple[ChurnPlan, ...] = ()

    @property
    def processes(self) -> frozenset[str]:
        """Those that come or go."""
        return frozenset(change.process for change in self.changes)


def candidates(churn: Churn, roles: Mapping[str, RoleCounts], regions: Sequence[str]) -> list[str]:
    """The processes of its role in its regions, in the plan's order."""
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
    """What this seed means. Pure: the same arguments give the same changes."""
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
    """Something that is to happen. number: in order of planning. process: "" for one by chance; life: only if
    it is still in that one; 0 for any.
    """

    at_us: int
    number: int
    group: str
    action: ProcessAction
    process: str = ""
    life: int = 0


@dataclass(slots=True, eq=False)
class _Going:
    """A group of departures: who may go, and by a lifetime who does."""

    churn: Departures
    among: list[str]
    mortal: frozenset[str]
    rng: Random


class _Drawing:
    """Goes through the run by time. `there`: of processes that run, how often each was started."""

    def __init__(self, duration_us: int, seed: int) -> None:
        self.changes: list[ProcessChange] = []
        self._duration_us = duration_us
        self._seed = seed
        self._newcomers: set[str] = set()
        self._going: dict[str, _Going] = {}
        self._there: set[str] = set()
        self._lives: dict[str, int] = {}
        self._planned = 0
        self._agenda: list[_Due] = []

    def add_arrivals(self, churn: Arrivals, among: Sequence[str]) -> None:
        """Choose who comes, and when."""
        rng = self._rng(churn)
        free = [name for name in among if name not in self._newcomers]
        times = churn.times_us(rng, self._duration_us, len(free))
        chosen = rng.sample(free, len(times))
        self._newcomers.update(chosen)
        for at_us, name in zip(times, chosen, strict=True):
            self._plan(at_us, churn.name, ProcessAction.JOIN, name)

    def add_departures(self, churn: Departures, among: list[str]) -> None:
        """Choose when some go, or who has a lifetime."""
        rng = self._rng(churn)
        count = len(among) if churn.count is None else min(churn.count, len(among))
        mortal = frozenset(rng.sample(among, count)) if churn.lifetime is not None else frozenset()
        going = _Going(churn, among, mortal, rng)
        self._going[churn.name] = going
        if churn.lifetime is None:
            most = len(among) if churn.away is None else COUNT_MAX
            for at_us in churn.times_us(rng, self._duration_us, most):
                self._plan(at_us, churn.name, _ENDS[churn.how])

    def run(self) -> None:
        """Let everybody come and go."""
        for name in dict.fromkeys(name for going in self._going.values() for name in going.among):
            if name not in self._newcomers:
                self._began(name, 0)
        while self._agenda:
            due = heapq.heappop(self._agenda)
            if due.action in (ProcessAction.JOIN, ProcessAction.RESTART):
                self.changes.append(ProcessChange(due.at_us, due.group, due.process, due.action))
                self._began(due.process, due.at_us)
            else:
                self._end(due, self._going[due.group])

    def _began(self, name: str, at_us: int) -> None:
        self._there.add(name)
        self._lives[name] = self._lives.get(name, 0) + 1
        for going in self._going.values():
            lifetime = going.churn.lifetime
            if lifetime is not None and name in going.mortal:
                end_us = max(at_us, going.churn.from_us) + lifetime.drawn_us(going.rng)
                if end_us <= (going.churn.to_us or self._duration_us):
                    how = _ENDS[going.churn.how]
                    self._plan(end_us, going.churn.name, how, name, self._lives[name])

    def _end(self, due: _Due, going: _Going) -> None:
        """One goes: a certain one, if that is still in the same life; or one by chance."""
        at_us, name = due.at_us, due.process
        if not name:
            there = [each for each in going.among if each in self._there]
            if not there:
                return
            name = going.rng.choice(there)
        elif name not in self._there or self._lives[name] != due.life:
            return
        self._there.remove(name)
        self.changes.append(ProcessChange(at_us, going.churn.name, name, _ENDS[going.churn.how]))
        if going.churn.away is not None:
            back_us = at_us + going.churn.away.drawn_us(going.rng)
            self._plan(back_us, going.churn.name, ProcessAction.RESTART, name)

    def _plan(self, at_us: int, group: str, action: ProcessAction, process: str = "", life: int = 0) -> None:
        if at_us < self._duration_us:
            self._planned += 1
            heapq.heappush(self._agenda, _Due(at_us, self._planned, group, action, process, life))

    def _rng(self, churn: Churn) -> Random:
        return Random(f"churn {self._seed} {churn.kind} {churn.name}")  # noqa: S311  to be replayed
