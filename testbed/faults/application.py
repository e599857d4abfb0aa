"""Carries out the plan's changes at their times, and says for each when it was asked for and when it held.

The plan has compiled faults into changes of single link directions and processes, sorted by time; here they
only happen. Changes of one instant are all asked for before any of them is waited for: on a busy machine it
takes 100 ms until a process has been forked. A change that comes late, because the machine was busy or the
one before it took long, is carried out all the same and recorded as late. What a change does is the caller's
business (`apply`).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from experiments.plan import LinkChange, ProcessChange
from testbed.errors import TestbedError
from testbed.links.emulator import Applied

Change = LinkChange | ProcessChange

LATE_NS = 100_000_000
"""From here on a change counts as late: a tenth of what a recovery in seconds is shown with."""
NAP_S = 0.5
"""Longest single sleep, so that a stepped clock is noticed."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A change and what came of it; `applied_ns` is None, with the reason, when it could not be done."""

    change: Change
    requested_ns: int
    applied_ns: int | None
    error: str | None = None

    @property
    def problem(self) -> str | None:
        """What to tell the user, if something is wrong with it."""
        if self.applied_ns is None:
            return f"fault {self.change.fault} could not change {target(self.change)}: {self.error}"
        late_ns = self.applied_ns - self.requested_ns
        if late_ns > LATE_NS:
            return f"fault {self.change.fault} changed {target(self.change)} {late_ns / 1e6:.0f} ms late"
        return None

    def as_json(self) -> dict[str, object]:
        """The record that stands in run.json under `changes`."""
        times = {"requested_ns": self.requested_ns, "applied_ns": self.applied_ns}
        change = self.change
        what: dict[str, object]
        if isinstance(change, LinkChange):
            what = {"link": change.link, "direction": str(change.direction), "state": str(change.state)}
        else:
            what = {"process": change.process, "action": str(change.action)}
            what |= {"peers": list(change.peers)} if change.peers else {}
        return {"fault": change.fault, **what, **times}


def target(change: Change) -> str:
    """What a change changes, in words."""
    if isinstance(change, LinkChange):
        return f"link {change.link} {change.direction}"
    return f"process {change.process}"


async def carry_out(
    changes: Sequence[Change],
    *,
    zero_ns: int,
    apply: Callable[[Change], Awaitable[Applied]],
    record: Callable[[Carried], None],
    now_ns: Callable[[], int] = time.time_ns,
) -> None:
    """Do each change at `zero_ns` (CLOCK_REALTIME, time 0 of the run) plus its own time; those of one time
    together, and otherwise one after the other.

    A change that fails with a TestbedError is recorded as such and the others go on: a run with a wrong
    fault is analysed too, and its report says so.
    """
    for at_us, together in groupby(changes, key=lambda change: change.at_us):
        requested_ns = zero_ns + at_us * 1000
        while (wait_ns := requested_ns - now_ns()) > 0:
            await asyncio.sleep(min(wait_ns / 1e9, NAP_S))
        for carried in await carry_out_together(tuple(together), requested_ns, apply):
            record(carried)


async def carry_out_together(
    changes: Sequence[Change], requested_ns: int, apply: Callable[[Change], Awaitable[Applied]]
) -> list[Carried]:
    """Do the changes of one instant now, and say what came of each, in their order.

    Links come first, one by one. Then all processes are told before any is waited for; only several changes
    of the same process wait for each other.
    """
    carried: dict[int, Carried] = {}
    of_process: dict[str, list[int]] = {}

    async def in_turn(numbers: Iterable[int]) -> None:
        for number in numbers:
            carried[number] = await carry_out_one(changes[number], requested_ns, apply)

    await in_turn(number for number, change in enumerate(changes) if isinstance(change, LinkChange))
    for number, change in enumerate(changes):
        if isinstance(change, ProcessChange):
            of_process.setdefault(change.process, []).append(number)
    await asyncio.gather(*map(in_turn, of_process.values()))
    return [carried[number] for number in range(len(changes))]


async def carry_out_one(
    change: Change, requested_ns: int, apply: Callable[[Change], Awaitable[Applied]]
) -> Carried:
    """Do one change now, and say what came of it."""
    try:
        applied = await apply(change)
    except TestbedError as error:
        return Carried(change, requested_ns, None, str(error))
    return Carried(change, requested_ns, applied.applied_ns)
