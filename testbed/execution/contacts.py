"""Contacts of peers that find each other: at its start a process knows one process that already runs.

This applies to roles with the trait `peer`. At each start a process gets another contact, drawn by the plan's
seed: preferably of its own region, running at that time according to the plan, and running for a while after
it. If all others are stopped or gone at that time, the contact is one that is stopped and continues later.
The very first process has no contact. Pure, and the same on all machines of a run.
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
"""How long a contact should keep running: a join takes much less."""
DRAWS_MAX = 32
"""Random draws of a contact before all processes are searched."""
FOREVER_US = 1 << 62
BEFORE_ALL_US = -FOREVER_US
_STARTING = (ProcessAction.JOIN, ProcessAction.RESTART, ProcessAction.REPLACE)
_GOES_ON = (*_STARTING, ProcessAction.CONTINUE)
_HALTS = (ProcessAction.KILL, ProcessAction.LEAVE, ProcessAction.STOP)

Member = dict[str, Any]
"""`node.core.specification.Member`, as JSON."""
Moment = tuple[int, int]
"""A time, and the position in the order of starts: at the same time, processes start in sequence."""


@dataclass(slots=True)
class _Schedule:
    """When a process is started, and the intervals in which it answers, each in order of time."""

    starts: list[Moment] = field(default_factory=list)
    answers_from: list[Moment] = field(default_factory=list)
    answers_until: list[int] = field(default_factory=list)

    def answers(self, at: Moment, until_us: int) -> bool:
        """Return whether it answers from before a moment until a time."""
        number = bisect_right(self.answers_from, at) - 1
        return number >= 0 and self.answers_until[number] > until_us

    def is_stopped(self, at: Moment) -> bool:
        """Return whether it ran before a moment and continues after it without a start."""
        following = bisect_right(self.answers_from, at)
        return 0 < following < len(self.answers_from) and self.answers_from[following] not in self.starts


class Contacts:
    """The contacts of all peers of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._seed = plan.seed
        self._schedules = _schedules(plan)
        self._all = [process for process in plan.processes if process.name in self._schedules]
        self._own = {process.name: process for process in self._all}
        self._addresses = {host.name: host.address for host in plan.hosts}
        self._near: dict[str, list[ProcessPlan]] = defaultdict(list)
        for process in self._all:
            self._near[process.region].append(process)

    def members_for(self, process: str, start: int) -> list[Member] | None:
        """Return the members of a process's specification; None if its role does not find others."""
        if process not in self._own:
            return None
        contact = self.contact_of(process, start)
        return [] if contact is None else [member_of(contact, self._addresses)]

    def contact_of(self, process: str, start: int) -> ProcessPlan | None:
        """Return the contact of a process at start number `start` (from 0); None if no other process runs."""
        own, starts = self._own[process], self._schedules[process].starts
        at = (
            starts[start] if start < len(starts) else (FOREVER_US - STAYS_US - 1, 0)
        )  # started by a command of the user
        rng = Random(f"{self._seed} contact {process} {start}")  # noqa: S311  reproducible
        near = self._near[own.region]
        for among, fits in (
            (near, lambda each: each.answers(at, at[0] + STAYS_US)),
            (self._all, lambda each: each.answers(at, at[0] + STAYS_US)),
            (near, lambda each: each.answers(at, at[0])),
            (self._all, lambda each: each.answers(at, at[0])),
            (self._all, lambda each: each.is_stopped(at)),
        ):
            found = self._drawn(among, own, fits, rng)
            if found is not None:
                return found
        return None

    def _drawn(
        self, among: Sequence[ProcessPlan], own: ProcessPlan, fits: Callable[[_Schedule], bool], rng: Random
    ) -> ProcessPlan | None:
        for _ in range(DRAWS_MAX):
            drawn = among[rng.randrange(len(among))]
            if drawn is not own and fits(self._schedules[drawn.name]):
                return drawn
        fitting = [other for other in among if other is not own and fits(self._schedules[other.name])]
        return fitting[rng.randrange(len(fitting))] if fitting else None


def member_of(process: ProcessPlan, addresses: Mapping[str, str]) -> Member:
    """Return a process as others know it. addresses: by host."""
    return {
        "name": process.name,
        "host": process.host,
        "region": process.region,
        "role": process.role,
        "index": process.index,
        "address": addresses[process.host],
    }


def _schedules(plan: Plan) -> dict[str, _Schedule]:
    """Return the schedules, by name, of the processes that find each other by themselves."""
    schedules = {process.name: _Schedule() for process in plan.having(Trait.PEER)}
    joining = set(plan.joining)
    for number, process in enumerate(plan.processes):
        if process.name in schedules and process.name not in joining:
            _begin(schedules[process.name], (BEFORE_ALL_US, number), is_start=True)
    for number, change in enumerate(plan.changes):
        if not isinstance(change, ProcessChange) or change.process not in schedules:
            continue
        schedule = schedules[change.process]
        if change.action in _GOES_ON:
            _begin(schedule, (change.at_us, number), is_start=change.action in _STARTING)
        elif change.action in _HALTS and schedule.answers_until:
            schedule.answers_until[-1] = min(schedule.answers_until[-1], change.at_us)
    return schedules


def _begin(schedule: _Schedule, at: Moment, *, is_start: bool) -> None:
    if is_start:
        schedule.starts.append(at)
    schedule.answers_from.append(at)
    schedule.answers_until.append(FOREVER_US)
