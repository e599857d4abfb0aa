"""Monitors the machine during a run: processors, disk, clock, and whether the link emulator works.

Once a second it reads the utilisation of all processors (for the fidelity verdict) and the
free disk space. More often it checks whether the link emulator is alive and whether the wall clock was set.
It only reports; the caller decides what follows.
"""

import asyncio
import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from testbed.steady_clock import ClockSteps

PERIOD_S = 1.0
LOOKS_PER_PERIOD = 4
DISK_RESERVE_BYTES = 64 << 20
"""With less free disk space a run ends in order, so that its outcome can be recorded."""


async def watch(
    directory: Path,
    *,
    failure: Callable[[], str | None],
    on_busy: Callable[[int, float], None],
    on_disk_low: Callable[[int], None],
    on_failure: Callable[[str], None],
    on_clock_set: Callable[[int], None],
) -> None:
    """Monitor until cancelled, or until there is nothing left to report.

    failure: returns why the link emulator has failed, or None. on_busy: called with (CLOCK_REALTIME ns,
    fraction) each second. on_disk_low: called once with the free bytes. on_failure: called once with the
    reason. on_clock_set: called at each step of CLOCK_REALTIME with its size in nanoseconds.
    """
    steps = ClockSteps()
    psutil.cpu_percent()  # from now on
    disk_was_low = False
    while True:
        end_s, now_s = time.monotonic() + PERIOD_S, -math.inf
        while now_s < end_s:  # at least once
            await asyncio.sleep(PERIOD_S / LOOKS_PER_PERIOD)
            reason = failure()
            if reason is not None:
                on_failure(reason)
                return
            if step_ns := steps.since_last():
                on_clock_set(step_ns)
            now_s = time.monotonic()
        on_busy(time.time_ns(), round(psutil.cpu_percent() / 100, 3))
        free = shutil.disk_usage(directory).free
        if free < DISK_RESERVE_BYTES and not disk_was_low:
            disk_was_low = True
            on_disk_low(free)
