"""Processes with little processor time or memory during faults, by control groups.

A process whose limits the plan changes at some time enters its group at each start, because the kernel counts
memory in the group that allocated it. If several faults overlap, the smallest limit counts.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from experiments.planned.changes import ProcessAction, ProcessChange
from experiments.planned.plan import Plan
from experiments.records.observations import ThrottleRecord
from testbed.errors import TestbedError
from testbed.sandbox.control_groups import ControlGroup, group_name, mount_hierarchies

EVERY_VARIABLE = "CUTSET_THROTTLE"
"""Environment variable of an interactive run in which every process has a control group: its token."""


def throttled(plan: Plan) -> frozenset[str]:
    """Return the processes that have limits at some time."""
    changes = (each for each in plan.changes if isinstance(each, ProcessChange))
    return frozenset(each.process for each in changes if each.action is ProcessAction.THROTTLE)


@dataclass(frozen=True, slots=True)
class _Limits:
    """The limits of a process since an instant, and what its group had used by then."""

    processor: float | None
    memory_bytes: int | None
    since_ns: int
    used_s: float
    killed: int


class Throttles:
    """The control groups of processes. hosts: of the processes in `throttled`. on_end: gets a record of each
    period with limits.
    """

    def __init__(
        self, hosts: Mapping[str, str], token: str, on_end: Callable[[ThrottleRecord], None]
    ) -> None:
        self._hosts, self._token, self._on_end = dict(hosts), token, on_end
        self._groups: dict[str, ControlGroup] = {}
        self._faults: defaultdict[str, dict[str, ProcessChange]] = defaultdict(dict)
        self._limits: dict[str, _Limits] = {}
        self._killed: defaultdict[str, int] = defaultdict(int)

    def make(self) -> None:
        """Create the groups. Raises TestbedError."""
        if not self._hosts:
            return
        try:
            parents = mount_hierarchies()
            for name, host in self._hosts.items():
                self._groups[name] = ControlGroup(parents, group_name(self._token, host))
                self._groups[name].make()
        except OSError as error:
            raise TestbedError(f"cannot make control groups: {error.strerror}") from None

    def entries(self, name: str) -> tuple[str, ...]:
        """Return the files through which a process enters its group; none if it has no group."""
        return self._groups[name].entries if name in self._groups else ()

    def change(self, change: ProcessChange) -> None:
        """Begin or end a fault. Raises TestbedError."""
        name, faults = change.process, self._faults[change.process]
        if name not in self._groups:
            raise TestbedError(f"{name} has no control group (`cutset doctor` says why)")
        if change.action is ProcessAction.THROTTLE:
            faults[change.rule or ""] = change
        else:
            faults.pop(change.rule or "", None)
        processor = min((each.processor for each in faults.values() if each.processor), default=None)
        memory = min((each.memory_bytes for each in faults.values() if each.memory_bytes), default=None)
        try:
            self._end(name)
            self._limits[name] = self._now(name, processor, memory)
            self._groups[name].limit_processor(processor)
            self._groups[name].limit_memory(memory)
        except OSError as error:
            raise TestbedError(f"its control group: {error.strerror}") from None

    def starved(self, name: str) -> bool:
        """Return whether a process of the group was killed for lack of memory since the last call."""
        if name not in self._groups:
            return False
        before, self._killed[name] = self._killed[name], self._groups[name].killed()
        return self._killed[name] > before

    def end(self) -> None:
        """Record the periods that still last."""
        for name in tuple(self._limits):
            self._end(name)

    def _now(self, name: str, processor: float | None, memory_bytes: int | None) -> _Limits:
        group = self._groups[name]
        return _Limits(processor, memory_bytes, time.time_ns(), group.used_s(), group.killed())

    def _end(self, name: str) -> None:
        then = self._limits.pop(name, None)
        if then is None or (then.processor is None and then.memory_bytes is None):
            return
        now = self._now(name, None, None)
        self._on_end(
            ThrottleRecord(
                name,
                then.since_ns,
                now.since_ns,
                then.processor,
                then.memory_bytes,
                round(now.used_s - then.used_s, 6),
                now.killed - then.killed,
            )
        )
