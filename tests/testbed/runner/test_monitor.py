"""Monitoring of processors, disk and links."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.runner import monitor

SECOND_NS = 10**9


def watched(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failures: list[str | None],
    wanted: Callable[[], bool],
    heard: list[Any],
) -> None:
    """Watch, without waiting, until `wanted`."""
    real_sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _: real_sleep(0))
    monkeypatch.setattr(monitor, "PERIOD_S", 0.0)
    monkeypatch.setattr(monitor.psutil, "cpu_percent", lambda: 12.3)

    async def work() -> None:
        watch = asyncio.create_task(
            monitor.watch(
                tmp_path,
                failure=lambda: failures.pop(0) if failures else None,
                on_busy=lambda _, busy: heard.append(("busy", busy)),
                on_disk_low=lambda free: heard.append(("low", free)),
                on_failure=lambda reason: heard.append(("failure", reason)),
                on_clock_set=lambda step_ns: heard.append(("clock", step_ns)),
            )
        )
        while not wanted():
            await real_sleep(0)
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)

    asyncio.run(asyncio.wait_for(work(), 20))


def test_low_disk_is_reported_once(tmp_path, monkeypatch):
    monkeypatch.setattr(monitor, "DISK_RESERVE_BYTES", 1 << 60)
    heard: list[Any] = []
    watched(tmp_path, monkeypatch, [], lambda: len(heard) >= 6, heard)
    assert [what for what, _ in heard].count("low") == 1


def test_links_that_fail_are_reported_with_the_reason(tmp_path, monkeypatch):
    heard: list[Any] = []
    died = ("failure", "the relay died")
    watched(tmp_path, monkeypatch, [None, None, "the relay died"], lambda: died in heard, heard)
    assert heard == [("busy", 0.123), ("busy", 0.123), died]


def test_a_clock_step_is_reported_with_its_size(tmp_path, monkeypatch):
    real, heard = time.time_ns, []
    steps = [0, 3 * SECOND_NS, 3 * SECOND_NS, -SECOND_NS]

    def set_by_and_by() -> int:
        return real() + steps[min(len(heard), len(steps) - 1)]

    monkeypatch.setattr(time, "time_ns", set_by_and_by)
    watched(tmp_path, monkeypatch, [], lambda: len(heard) >= 6, heard)
    found = [step_ns for what, step_ns in heard if what == "clock"]
    assert [round(step_ns / SECOND_NS, 2) for step_ns in found] == [3, -4]
