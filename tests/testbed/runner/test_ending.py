"""Ending before time."""

import asyncio

import pytest

from testbed.runner.phases import Outcome
from testbed.runner.stage import Ending


async def forever() -> None:
    await asyncio.Event().wait()


async def at_once() -> None:
    pass


async def broken() -> None:
    raise ValueError("broken")


def test_work_that_ends_by_itself_is_done() -> None:
    async def go() -> None:
        ending = Ending()
        assert await ending.or_done(at_once())
        assert (ending.asked, ending.outcome) == (False, Outcome.COMPLETED)

    asyncio.run(go())


def test_work_is_given_up_when_the_run_is_to_end() -> None:
    async def go() -> None:
        ending = Ending()
        asyncio.get_running_loop().call_soon(ending.interrupt, "enough")
        assert not await ending.or_done(forever())
        assert (ending.outcome, ending.reason) == (Outcome.INTERRUPTED, "enough")

    asyncio.run(asyncio.wait_for(go(), 20))


def test_what_breaks_in_the_work_is_raised() -> None:
    with pytest.raises(ValueError, match="broken"):
        asyncio.run(Ending().or_done(broken()))


def test_the_first_reason_counts() -> None:
    ending = Ending()
    ending.crash("the relay died")
    ending.interrupt("stopped by the user")
    assert (ending.outcome, ending.reason, ending.crashed) == (Outcome.CRASHED, "the relay died", True)
