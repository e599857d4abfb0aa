"""The phases of a run: build, workload, drain and end.

`execute` has their order, and what each records and reports to the follower. A `World` has the processes and
the network: those of this machine (`testbed.runner.local_world`), which may execute a part of the plan, or
simulated ones (`testbed.backends.virtual_world`).
"""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from experiments.planned.draining import settles_by_time
from experiments.planned.plan import Plan
from experiments.records.run_record import Outcome, RunPhase
from testbed.execution.record import RunRecordWriter

Result = TypeVar("Result")


class World(Protocol):
    """Processes and a network. plan: the part that is executed here. record: the run's record so far."""

    plan: Plan
    record: RunRecordWriter

    async def build(self) -> bool:
        """Build the network and start the processes that do not join later.

        Return whether all are ready; false if the run has to end early. Raises TestbedError if one does not
        become ready, or if the network cannot be built.
        """

    async def time_0(self) -> int | None:
        """Return the instant at which the workload begins, soon; None if the run has to end early."""

    def begin(self, zero_ns: int) -> None:
        """Let processes publish, and links follow their traces, from time 0 on."""

    async def work(self, zero_ns: int) -> None:
        """Apply the plan's changes at their times until the workload is over, or the run has to end early."""

    def stop_publishers(self) -> None:
        """Let publishers stop."""

    async def drain(self, drained: Callable[[float], Coroutine[Any, Any, None]]) -> None:
        """Await `drained`, called with the longest wait in seconds, unless the run has to end early."""

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""

    def elapsed_s(self) -> float:
        """Return the time since any fixed instant."""

    async def all_silent(self, within_s: float) -> bool:
        """Wait until no publisher waits for an acknowledgement; return whether that came in time."""

    async def all_delivered(self, within_s: float) -> bool:
        """Wait until every client has all acknowledged events; return whether that came in time."""

    async def end(self) -> Outcome:
        """End all processes in order, and record what they and the network leave."""


async def execute(world: World) -> None:
    """Execute a run: all phases, or those until it has to end early. Raises TestbedError, OSError."""
    record = world.record
    record.phase(RunPhase.BUILDING)
    if await world.build():
        record.time("ready_ns")
        zero_ns = await world.time_0()
        if zero_ns is not None:
            await workload(world, zero_ns)
            await drain(world)
    outcome = await world.end()
    record.time("ended_ns")
    record.note(outcome=outcome)
    record.phase(RunPhase.COLLECTED)


async def workload(world: World, zero_ns: int) -> None:
    """Run the workload from time 0 on, with its faults, and stop the publishers."""
    world.record.time("zero_ns", zero_ns)
    world.begin(zero_ns)
    world.record.phase(RunPhase.RUNNING)
    world.record.notify("running", zero_ns=zero_ns, duration_us=world.plan.duration_us)
    await world.work(zero_ns)
    world.stop_publishers()
    world.record.time("stopped_ns")


async def drain(world: World) -> None:
    """Wait until everything is delivered, at most as long as planned; the analysis judges what is missing."""
    world.record.phase(RunPhase.DRAINING)

    async def drained(within_s: float) -> None:
        ends_s = world.elapsed_s() + within_s
        if not await world.all_silent(within_s):  # only then are all published events known
            return
        contract = world.plan.declared.contract
        if settles_by_time(contract):
            await world.sleep(min(contract.settle_us / 1e6, ends_s - world.elapsed_s()))
        if await world.all_delivered(ends_s - world.elapsed_s()):
            world.record.time("drained_ns")

    await world.drain(drained)
    world.record.notify("drained")


def completed(work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of a coroutine that never waits: in virtual time, time passes by computing."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    work.close()
    raise AssertionError("a phase in virtual time waited for an event loop")
