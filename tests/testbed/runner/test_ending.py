"""Termination before time."""

import asyncio

import pytest

from experiments.records.run_record import Outcome
from testbed.runner.run_context import Termination


async def forever() -> None:
    await asyncio.Event().wait()


async def at_once() -> None:
    pass


async def broken() -> None:
    raise ValueError("broken")


def test_work_that_ends_by_itself_is_done() -> None:
    async def go() -> None:
        termination = Termination()
        assert await termination.or_done(at_once())
        assert (termination.requested, termination.outcome) == (False, Outcome.COMPLETED)

    asyncio.run(go())


def test_work_is_given_up_when_the_run_is_to_end() -> None:
    async def go() -> None:
        termination = Termination()
        asyncio.get_running_loop().call_soon(termination.interrupt, "enough")
        assert not await termination.or_done(forever())
        assert (termination.outcome, termination.reason) == (Outcome.INTERRUPTED, "enough")

    asyncio.run(asyncio.wait_for(go(), 20))


def test_errors_of_the_work_are_raised() -> None:
    with pytest.raises(ValueError, match="broken"):
        asyncio.run(Termination().or_done(broken()))


def test_the_first_reason_counts() -> None:
    termination = Termination()
    termination.crash("the relay died")
    termination.interrupt("stopped by the user")
    assert (termination.outcome, termination.reason, termination.crashed) == (
        Outcome.CRASHED,
        "the relay died",
        True,
    )
