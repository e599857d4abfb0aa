"""A machine in real time whose clock is set: the times that it is given, and its timers."""

import asyncio
import time

import uvloop

from node.core import machine as m
from node.core.wrong_clock import WrongClock
from node.protocols.sprinkler.messages import CODEC
from node.tcp.adapter import Adapter, ApplicationOutputs

HOUR_US = 3_600_000_000


class Waiting:
    """Sets timers one and two hours ahead, and records when they fire."""

    frame_limit_bytes = 1000

    def __init__(self) -> None:
        self.began_us = 0
        self.fired: dict[m.Timer, int] = {}

    def handle(self, given: m.Input, now_us: int) -> list[m.Effect]:
        if isinstance(given, m.TimerFired):
            self.fired[given.timer] = now_us - self.began_us
            return []
        self.began_us = now_us
        return [m.SetTimer((str(hours),), now_us + hours * HOUR_US) for hours in (1, 2)]


async def set_twice() -> dict[m.Timer, int]:
    """Set a clock forward by an hour and a half with a drift; a tenth of a second later restore it."""
    machine = Waiting()
    adapter = Adapter(machine, CODEC, "127.0.0.1", ApplicationOutputs())
    adapter.start()
    adapter.set_clock(WrongClock(HOUR_US * 3 // 2, 500_000, time.time_ns() // 1000))
    await asyncio.sleep(0.1)
    first = dict(machine.fired)
    adapter.set_clock(WrongClock())
    await asyncio.sleep(0.05)
    assert machine.fired == first
    adapter.set_clock(WrongClock(HOUR_US * 2))
    await asyncio.sleep(0.05)
    await adapter.close()
    return machine.fired


def test_timers_are_due_by_the_clock_as_it_is_set() -> None:
    for run in (asyncio.run, uvloop.run):
        fired = run(set_twice())
        assert HOUR_US * 3 // 2 <= fired["1",] < HOUR_US * 3 // 2 + 10_000_000
        assert HOUR_US * 2 <= fired["2",] < HOUR_US * 2 + 10_000_000
