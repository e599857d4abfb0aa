"""Disks in virtual time: the counterpart of `node.tcp.storage`, with a duration for each sync.

A process's disk belongs to its name, so a restarted process finds it again. Synced data survives a kill. From
the unsynced operations, a crash keeps a random first part: none, all, or up to the middle of an Append. Syncs
are grouped as on real disks: data appended during one is part of the next.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from node.core import machine as m
from node.sim.clock import VirtualClock
from node.sim.process import Node

Operation = m.Append | m.Rewrite
SYNC_US = 1_000  # duration of a sync of any size


@dataclass(slots=True)
class SimulatedDisk:
    """The disk of one process. `segments` has the durable data, by number, in order."""

    segments: dict[int, list[Any]] = field(default_factory=dict)
    waiting: list[Operation] = field(default_factory=list)  # not yet durable
    appended: int = 0  # Append effects that became durable since the process started
    syncing: int = 0  # number of first operations in `waiting` that are being synced
    life: int = 0  # counts the process's ends: syncs of an earlier process are void
    is_full: bool = False
    slower_us: int = 0  # additional duration of a sync that begins now

    def end(self) -> None:
        """Drop unsynced operations at the end of the process."""
        self.waiting.clear()
        self.appended = self.syncing = 0
        self.life += 1

    def execute(self, operation: Operation) -> None:
        """Make one Append or Rewrite durable."""
        if isinstance(operation, m.Append):
            self.segments.setdefault(operation.segment, []).extend(operation.messages)
            return
        first, *others = operation.segments
        for number in others:
            del self.segments[number]
        if operation.messages:
            self.segments[first] = list(operation.messages)
        else:
            del self.segments[first]


class Disks:
    """The disks of all processes. give: hands a process an input. seed: decides what crashes leave."""

    def __init__(
        self,
        clock: VirtualClock,
        give: Callable[[Node, m.Input], None],
        seed: int = 0,
        sync_us: int = SYNC_US,
    ) -> None:
        self.sync_us = sync_us
        self._clock = clock
        self._give = give
        self._rng = Random(f"disks {seed}")  # noqa: S311 - simulation, not secrets
        self._disks: dict[str, SimulatedDisk] = {}

    def disk_of(self, name: str) -> SimulatedDisk:
        """Return the disk of a process."""
        return self._disks.setdefault(name, SimulatedDisk())

    def stored(self, name: str) -> Iterable[m.StoredSegment]:
        """Return what a process finds when it starts: after an orderly end, everything that it appended."""
        disk = self.disk_of(name)
        for operation in disk.waiting:
            disk.execute(operation)
        disk.end()
        return (m.StoredSegment(number, tuple(stored)) for number, stored in list(disk.segments.items()))

    def take(self, node: Node, operation: Operation) -> None:
        """Execute an Append or a Rewrite, after those before it."""
        disk = self.disk_of(node.spec.name)
        disk.waiting.append(operation)
        self._sync(node, disk)

    def crash(self, name: str) -> None:
        """Drop a random part of the unsynced operations of a killed process."""
        disk = self.disk_of(name)
        kept = self._rng.randrange(len(disk.waiting) + 1)
        for operation in disk.waiting[:kept]:
            disk.execute(operation)
        if kept < len(disk.waiting) and isinstance(torn := disk.waiting[kept], m.Append):
            whole = self._rng.randrange(len(torn.messages) + 1)
            if whole:
                disk.execute(m.Append(torn.segment, torn.messages[:whole]))
        disk.end()

    def lose(self, *names: str) -> None:
        """Replace the disks of these processes, which must not be running, by empty ones."""
        for name in names:
            self._disks.pop(name, None)

    def fill(self, node: Node) -> None:
        """Make this process's disk full from now on; a sync that has begun still succeeds."""
        self.disk_of(node.spec.name).is_full = True

    def free(self, node: Node) -> None:
        """Make space on this process's disk again."""
        disk = self.disk_of(node.spec.name)
        disk.is_full = False
        self._sync(node, disk)

    def _sync(self, node: Node, disk: SimulatedDisk) -> None:
        if disk.syncing or not disk.waiting:
            return
        if disk.is_full:
            self._give(node, m.StorageFailed("no space left on device"))
            return
        disk.syncing = len(disk.waiting)
        self._clock.at(
            self._clock.now_us + self.sync_us + disk.slower_us, self._synced, (node, disk, disk.life)
        )

    def _synced(self, planned: tuple[Node, SimulatedDisk, int]) -> None:
        node, disk, life = planned
        if disk.life != life:
            return
        done, disk.waiting = disk.waiting[: disk.syncing], disk.waiting[disk.syncing :]
        disk.syncing = 0
        for operation in done:
            disk.execute(operation)
        appended = sum(isinstance(operation, m.Append) for operation in done)
        disk.appended += appended
        if appended:
            self._give(node, m.Synced(disk.appended))
        self._sync(node, disk)
