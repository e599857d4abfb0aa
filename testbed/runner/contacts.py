"""Who is told of whom, where peers find each other: each process of one that runs already.

The roles are those with the trait `peer`. A process is told of one other at each of its starts, by the plan's
seed: one of its own region before others, that is running then as far as the plan says, and that goes on for
a while; or, where all others are stopped or gone just then, one that is stopped and goes on later. The
very first one is told of nobody. Pure, and the same on all machines of a run.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from experiments.declared import Trait
from experiments.planned.changes import ProcessAction, ProcessChange
from experiments.planned.plan import Plan, ProcessPlan

STAYS_US = 10_000_000
"""For so long a contact should go on: a join takes much less."""
DRAWS_MAX = 32
"""Of a contact by chance; then all are looked through."""
FOREVER_US = 1 << 62
BEFORE_ALL_US = -FOREVER_US
_STARTING = (ProcessAction.JOIN, ProcessAction.RESTART, ProcessAction.REPLACE)
_GOES_ON = (*_STARTING, ProcessAction.CONTINUE)
_HALTS = (ProcessAction.KILL, ProcessAction.LEAVE, ProcessAction.STOP)

Member = dict[str, Any]
"""`node.core.specification.Member`, as JSON."""
Moment = tuple[int, int]
"""A time, and the place in the order of starts: at one time processes start one after the other."""


@dataclass(slots=True)
class _Life:
    """Of one process: when it is started, and from when to when it answers, each in order."""

    starts: list[Moment] = field(default_factory=list)
    answers_from: list[Moment] = field(default_factory=list)
    answers_until: list[int] = field(default_factory=list)

    def answers(self, at: Moment, until_us: int) -> bool:
        """Whether it answers from before a moment until a time."""
        number = bisect_right(self.answers_from, at) - 1
        return number >= 0 and self.answers_until[number] > until_us

    def is_stopped(self, at: Moment) -> bool:
        """Whether it was there before a moment, and is going on after it without a start."""
        following = bisect_right(self.answers_from, at)
        return 0 < following < len(self.answers_from) and self.answers_from[following] not in self.starts


class Contacts:
    """Of all processes of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._seed = plan.seed
        self._lives = _lives(plan)
        self._all = [process for process in plan.processes if process.name in self._lives]
        self._own = {process.name: process for process in self._all}
        self._addresses = {host.name: host.address for host in plan.hosts}
        self._near: dict[str, list[ProcessPlan]] = defaultdict(list)
        for process in self._all:
            self._near[process.region].append(process)

    def told(self, process: str, start: int) -> list[Member] | None:
        """The members of its specification; None if it does not find the others by itself."""
        if process not in self._own:
            return None
        contact = self.of(process, start)
        return [] if contact is None else [member_of(contact, self._addresses)]

    def of(self, process: str, start: int) -> ProcessPlan | None:
        """Whom a process is told of when it was started so often before; None where nobody runs."""
        own, starts = self._own[process], self._lives[process].starts
        at = starts[start] if start < len(starts) else (FOREVER_US - STAYS_US - 1, 0)  # by hand
        rng = Random(f"{self._seed} contact {process} {start}")  # noqa: S311  to be repeated
        near = self._near[own.region]
        for among, fits in (
            (near, lambda life: life.answers(at, at[0] + STAYS_US)),
            (self._all, lambda life: life.answers(at, at[0] + STAYS_US)),
            (near, lambda life: life.answers(at, at[0])),
            (self._all, lambda life: life.answers(at, at[0])),
            (self._all, lambda life: life.is_stopped(at)),
        ):
            found = self._drawn(among, own, fits, rng)
            if found is not None:
                return found
        return None

    def _drawn(
        self, among: Sequence[ProcessPlan], own: ProcessPlan, fits: Callable[[_Life], bool], rng: Random
    ) -> ProcessPlan | None:
        for _ in range(DRAWS_MAX):
            drawn = among[rng.randrange(len(among))]
            if drawn is not own and fits(self._lives[drawn.name]):
                return drawn
        fitting = [other for other in among if other is not own and fits(self._lives[other.name])]
        return fitting[rng.randrange(len(fitting))] if fitting else None


def member_of(process: ProcessPlan, addresses: Mapping[str, str]) -> Member:
    """A process as others know it. addresses: by host."""
    return {
        "name": process.name,
        "host": process.host,
        "region": process.region,
        "role": process.role,
        "index": process.index,
        "address": addresses[process.host],
    }


def _lives(plan: Plan) -> dict[str, _Life]:
    """By name, of the processes that find each other by themselves."""
    lives = {process.name: _Life() for process in plan.having(Trait.PEER)}
    joining = set(plan.joining)
    for number, process in enumerate(plan.processes):
        if process.name in lives and process.name not in joining:
            _begin(lives[process.name], (BEFORE_ALL_US, number), is_start=True)
    for number, change in enumerate(plan.changes):
        if not isinstance(change, ProcessChange) or change.process not in lives:
            continue
        life = lives[change.process]
        if change.action in _GOES_ON:
            _begin(life, (change.at_us, number), is_start=change.action in _STARTING)
        elif change.action in _HALTS and life.answers_until:
            life.answers_until[-1] = min(life.answers_until[-1], change.at_us)
    return lives


def _begin(life: _Life, at: Moment, *, is_start: bool) -> None:
    if is_start:
        life.starts.append(at)
    life.answers_from.append(at)
    life.answers_until.append(FOREVER_US)
