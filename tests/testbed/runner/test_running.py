"""The phase in which drivers publish and planned faults are applied."""

import asyncio
import signal
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.planned.changes import (
    LinkChange,
    LinkDirectionName,
    LinkState,
    ProcessAction,
    ProcessChange,
)
from experiments.records.observations import ProcessExit
from testbed.errors import TestbedError
from testbed.links.emulator import Applied
from testbed.processes import NodeProcess, Processes
from testbed.runner.running import until_duration_is_over
from topologies.link_parameters import LinkParameters

SECOND = 1_000_000
CHANGES = (
    ProcessChange(1 * SECOND, "again", "r0/proxy-0", ProcessAction.RESTART),
    LinkChange(2 * SECOND, "cut", "r0-r1", LinkDirectionName.FORWARD, LinkState.BLACKHOLE, LinkParameters()),
)


def test_planned_changes_are_applied_even_if_a_slow_machine_is_late():
    changes: list[dict[str, Any]] = []
    done: list[str] = []

    async def saved() -> None:
        pass

    async def start(name: str, *, on_empty_disk: bool) -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        done.append(name)

    def change(asked: LinkChange) -> Applied:
        done.append(asked.link)
        return Applied(time.time_ns(), time.time_ns())

    record = SimpleNamespace(
        content=SimpleNamespace(changes=()),
        change=lambda applied: changes.append(applied.as_message()),
        problem=lambda _: None,
        save_aside=saved,
    )
    plan = SimpleNamespace(duration_us=3 * SECOND)
    network, processes = SimpleNamespace(change=change), SimpleNamespace()
    context: Any = SimpleNamespace(
        plan=plan, changes=tuple(enumerate(CHANGES)), record=record, network=network, processes=processes
    )
    starter: Any = SimpleNamespace(start=start)
    long_ago_ns = time.time_ns() - 60 * 1_000_000_000
    asyncio.run(until_duration_is_over(context, starter, long_ago_ns))
    assert done == ["r0/proxy-0", "r0-r1"]
    assert [entry["fault"] for entry in changes] == ["again", "cut"]
    assert all(entry["applied_ns"] is not None for entry in changes)


@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_a_run_is_as_long_as_planned_though_the_clock_is_set_meanwhile(step_s, monkeypatch):
    real_ns, set_ns = time.time_ns, [0]
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + set_ns[0])
    done: list[float] = []

    async def saved() -> None:
        pass

    def change(_: LinkChange) -> Applied:
        done.append(time.monotonic())
        set_ns[0] = step_s * 10**9
        return Applied(time.time_ns(), time.time_ns())

    record = SimpleNamespace(change=lambda _: None, save_aside=saved)
    changes = tuple(replace(CHANGES[1], at_us=at_us) for at_us in (50_000, 150_000))
    context: Any = SimpleNamespace(
        plan=SimpleNamespace(duration_us=250_000),
        changes=tuple(enumerate(changes)),
        record=record,
        network=SimpleNamespace(change=change),
    )
    begun_s = time.monotonic()
    run = until_duration_is_over(context, SimpleNamespace(), time.time_ns())
    asyncio.run(asyncio.wait_for(run, 20))
    assert time.monotonic() - begun_s >= 0.25
    assert [at_s - begun_s >= planned_s for at_s, planned_s in zip(done, (0.05, 0.15), strict=True)] == [
        True,
        True,
    ]


def test_a_process_killed_by_the_kernel_for_lack_of_memory_counts_as_killed():
    processes = Processes(on_exit=lambda node: None)
    for name, is_starved in (("r0/starved-0", True), ("r0/ended-0", False)):
        end = ProcessExit(None, signal.SIGKILL, 1, expected=True, starved=is_starved)
        processes.nodes[name] = NodeProcess(name, name.replace("/", "-"), pid=1, exit=end)
    processes.signal("r0/starved-0", signal.SIGKILL, ends=True)
    for name, ends in (("r0/starved-0", False), ("r0/ended-0", True)):
        with pytest.raises(TestbedError, match="is not running"):
            processes.signal(name, signal.SIGTERM, ends=ends)
