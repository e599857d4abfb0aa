"""Application of the plan's changes at their times, with the requested and the actual time of each.

The plan has compiled faults into changes of single link directions and processes, sorted by time. Changes of
one instant are all started before any of them is awaited: on a busy machine a fork takes 100 ms. A change
that is late, because the machine was busy or the change before it took long, is still applied and is recorded
as late. The caller determines how a change is applied (`apply`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from experiments.planned.changes import LinkChange, ProcessChange
from experiments.records.observations import ChangeRecord
from testbed.errors import TestbedError
from testbed.links.emulator import Applied

Change = LinkChange | ProcessChange
Numbered = tuple[int, Change]
"""A change with its index in the plan of the whole run."""

LATE_NS = 100_000_000
"""A change counts as late from here on: a tenth of the resolution of recovery times in seconds."""


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """A change and its result; `applied_ns` is None, and `error` says why, if it could not be applied."""

    index: int  # of the change in the run's plan
    change: Change
    requested_ns: int
    applied_ns: int | None
    error: str | None = None

    @property
    def problem(self) -> str | None:
        """A message for the user if the change failed or was late, else None."""
        if self.applied_ns is None:
            return f"fault {self.change.fault} could not change {target(self.change)}: {self.error}"
        late_ns = self.applied_ns - self.requested_ns
        if late_ns > LATE_NS:
            return f"fault {self.change.fault} changed {target(self.change)} {late_ns / 1e6:.0f} ms late"
        return None

    @property
    def record(self) -> ChangeRecord:
        """The entry of the run's record."""
        return ChangeRecord(self.index, self.requested_ns, self.applied_ns)

    def as_message(self) -> dict[str, object]:
        """Return the message to the follower of the run."""
        times = {"index": self.index, "requested_ns": self.requested_ns, "applied_ns": self.applied_ns}
        change = self.change
        what: dict[str, object]
        if isinstance(change, LinkChange):
            what = {"link": change.place, "direction": str(change.direction), "state": str(change.state)}
        else:
            what = {"process": change.process, "action": str(change.action)}
            what |= {"peers": list(change.peers)} if change.peers else {}
        return {"fault": change.fault, **what, **times}


def target(change: Change) -> str:
    """Return the link direction or process that a change acts on, for messages."""
    if isinstance(change, LinkChange):
        return f"link {change.place} {change.direction}"
    return f"process {change.process}"


async def apply_changes(
    changes: Sequence[Numbered],
    *,
    zero_ns: int,
    apply: Callable[[Change], Awaitable[Applied]],
    record: Callable[[AppliedChange], None],
    now_ns: Callable[[], int],
) -> None:
    """Apply each change at `zero_ns` (CLOCK_REALTIME, time 0 of the run) plus its own time.

    Changes of one instant are applied concurrently, all others in sequence. now_ns: the clock
    (`testbed.steady_clock`). A change that fails with a TestbedError is recorded as failed, and the others
    continue: such a run is analysed too, and its report shows the failure.
    """
    for at_us, together in groupby(changes, key=lambda numbered: numbered[1].at_us):
        requested_ns = zero_ns + at_us * 1000
        while (wait_ns := requested_ns - now_ns()) > 0:
            await asyncio.sleep(wait_ns / 1e9)
        for applied in await apply_concurrently(tuple(together), requested_ns, apply):
            record(applied)


async def apply_concurrently(
    changes: Sequence[Numbered], requested_ns: int, apply: Callable[[Change], Awaitable[Applied]]
) -> list[AppliedChange]:
    """Apply the changes of one instant now; return their results in the same order.

    Links come first, one by one. Then changes of different processes are applied concurrently, and those of
    the same process in sequence.
    """
    by_index, applied = dict(changes), dict[int, AppliedChange]()
    of_process: dict[str, list[int]] = {}

    async def in_turn(numbers: Iterable[int]) -> None:
        for number in numbers:
            applied[number] = await apply_one(number, by_index[number], requested_ns, apply)

    await in_turn(number for number, change in changes if isinstance(change, LinkChange))
    for number, change in changes:
        if isinstance(change, ProcessChange):
            of_process.setdefault(change.process, []).append(number)
    await asyncio.gather(*map(in_turn, of_process.values()))
    return [applied[number] for number, _ in changes]


async def apply_one(
    index: int, change: Change, requested_ns: int, apply: Callable[[Change], Awaitable[Applied]]
) -> AppliedChange:
    """Apply one change now; return its result."""
    try:
        applied = await apply(change)
    except TestbedError as error:
        return AppliedChange(index, change, requested_ns, None, str(error))
    return AppliedChange(index, change, requested_ns, applied.applied_ns)
