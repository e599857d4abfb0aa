"""Machines that wait for each other, and the release of time 0."""

import asyncio
import time
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.execution.phases import workload
from testbed.runner import local_world
from testbed.runner.barrier import Barrier, Barriers
from testbed.runner.local_world import LocalWorld
from testbed.runner.run_context import Termination

S = 1_000_000_000
A_DAY_S = 86_400.0


class Played:
    """The environment of a run with other machines, and its results."""

    def __init__(self) -> None:
        self.times: dict[str, int] = {}
        self.problems: list[str] = []
        self.went: list[int] = []
        self.termination = Termination()
        self.told: list[dict[str, Any]] = []
        self.barriers = Barriers(self.told.append, alone=False)
        self.network = SimpleNamespace(begin_traces=lambda zero_ns: None)
        self.traffic = SimpleNamespace(begin=lambda zero_ns: None)
        self.record = SimpleNamespace(
            time=self.note_time,
            problem=self.problems.append,
            phase=lambda _: None,
            notify=lambda *_, **__: None,
            content=SimpleNamespace(plan=SimpleNamespace(duration_us=1)),
        )
        self.processes = SimpleNamespace(go=self.went.append, stop_drivers=lambda: None, launcher_pid=0)

    def measure_processors(self, *, at_zero: bool) -> None:
        """Do nothing: no process runs."""

    def note_time(self, name: str, time_ns: int = 0) -> int:
        self.times[name] = time_ns
        return time_ns

    async def run(self) -> None:
        async def until(*_: Any) -> None:
            pass

        world: Any = LocalWorld(self.record, self.termination, self.barriers, until, AsyncExitStack())
        world._context = self
        zero_ns = await world.time_0()
        if zero_ns is not None:
            await workload(world, zero_ns)


@pytest.fixture(autouse=True)
def _as_others_are(monkeypatch):
    """Keep the priority of the tests' own process."""
    monkeypatch.setattr(local_world, "raise_priority", lambda _: None)


def told_zero(ago_s: float) -> tuple[Played, int]:
    """Start a run and give it a time 0 that was this long ago."""
    played, zero_ns = Played(), time.time_ns() - round(ago_s * S)

    async def go() -> None:
        waiting = asyncio.create_task(played.run())
        await asyncio.sleep(0)
        played.barriers.release({"do": "go on", "at": "ready", "zero_ns": zero_ns})
        await waiting

    asyncio.run(go())
    return played, zero_ns


def test_time_0_is_the_signalled_one():
    played, zero_ns = told_zero(-3600.0)
    assert (played.times["zero_ns"], played.went) == (zero_ns, [zero_ns])
    assert played.problems == []


def test_a_late_time_0_is_recorded():
    played, zero_ns = told_zero(3600.0)
    assert played.went == [zero_ns]
    (problem,) = played.problems
    assert problem.startswith("time 0 was received 3600")


def test_a_run_without_a_signal_never_begins():
    played = Played()

    async def go() -> None:
        loop = asyncio.get_running_loop()
        before_s, waiting = loop.time, asyncio.create_task(played.run())
        while not played.told:
            await asyncio.sleep(0)
        loop.time = lambda: before_s() + A_DAY_S
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        played.termination.interrupt("no message for 300 s")
        await waiting

    asyncio.run(go())
    assert played.told == [{"did": "waits", "at": Barrier.READY}]
    assert (played.went, played.times) == ([], {})


def test_an_early_release_of_a_barrier_counts():
    async def go() -> None:
        barriers = Barriers(lambda _: None, alone=False)
        barriers.release({"at": "drained", "drained": True})
        barriers.release({"at": "drained", "drained": False})  # said again, as after a broken connection
        assert (await barriers.wait(Barrier.DRAINED))["drained"]

    asyncio.run(go())


def test_a_barrier_with_a_timeout_continues_alone():
    assert asyncio.run(Barriers(lambda _: None, alone=False).wait(Barrier.FINISHED, 0)) == {}
