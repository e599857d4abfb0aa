"""Early ends of runs."""

import asyncio

from experiments.records.run_record import Outcome
from testbed.runner.run_context import Termination


async def forever() -> None:
    await asyncio.Event().wait()


def test_work_is_given_up_when_the_run_is_to_end():
    async def go() -> None:
        termination = Termination()
        asyncio.get_running_loop().call_soon(termination.interrupt, "enough")
        assert not await termination.or_done(forever())
        assert (termination.outcome, termination.reason) == (Outcome.INTERRUPTED, "enough")

    asyncio.run(asyncio.wait_for(go(), 20))


def test_the_first_reason_counts():
    termination = Termination()
    termination.crash("the relay died")
    termination.interrupt("stopped by the user")
    assert (termination.outcome, termination.reason, termination.crashed) == (
        Outcome.CRASHED,
        "the relay died",
        True,
    )
