"""Faults that are applied on request, besides planned ones."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from experiments.loader import load_experiment
from experiments.planned.changes import LinkChange
from testbed.errors import TestbedError
from testbed.execution.record import RunRecordWriter
from testbed.faults.application import Change
from testbed.faults.interactive import open_ended
from testbed.links.emulator import Applied
from testbed.runner.fault_injector import FaultInjector
from testbed.runner.run_context import RunContext
from tests.testbed.runner.live import write_experiment
from tests.virtual_runs import prepared

PLANNED = "faults: [{name: own, at: 100ms, cut: [r0, r1], for: 100ms}]\n"
CUT = {"cut": ["r0", "r1"]}


class Bench:
    """A fault injector without a network: it records applied changes, and refuses those of the names in
    `broken`.
    """

    def __init__(self, folder: Path, *, ago_s: float, planned: str = "") -> None:
        experiment = load_experiment(str(write_experiment(folder, faults=planned)))
        experiment = open_ended(experiment, experiment.faults)
        run = prepared(experiment, folder)
        plan = run.read_run().plan
        self.record = RunRecordWriter(run, lambda _: None)
        self.broken: set[str] = set()
        self.applied: list[tuple[str, str]] = []
        context = cast("RunContext", SimpleNamespace(record=self.record, plan=plan))
        self.faults = FaultInjector(context, time.time_ns() - round(ago_s * 1e9), self._apply)

    async def _apply(self, change: Change) -> Applied:
        what = change.link if isinstance(change, LinkChange) else change.process
        if what in self.broken:
            raise TestbedError(f"{what} is not running")
        became = change.state if isinstance(change, LinkChange) else change.action
        self.applied.append((change.fault, str(became)))
        return Applied(time.time_ns(), time.time_ns())

    @property
    def planned(self) -> list[str]:
        """Return the faults of the plan in run.json."""
        return [fault.name for fault in self.record.content.plan.faults]


def test_interactive_changes_are_applied_at_once_and_enter_the_plan(tmp_path):
    bench = Bench(tmp_path, ago_s=3)
    carried = asyncio.run(bench.faults.ask(CUT))
    assert bench.applied == [("cut-1", "blackhole")] * 2
    assert all(each.applied_ns is not None and each.applied_ns >= each.requested_ns for each in carried)
    assert bench.planned == ["cut-1"]
    assert [change.fault for change, _ in bench.record.content.changes_applied] == ["cut-1"] * 2
    assert bench.faults.now()["links"] == {"r0-r1 forward": "blackhole", "r0-r1 backward": "blackhole"}


def test_impossible_changes_are_reported_and_not_recorded_as_applied(tmp_path):
    bench = Bench(tmp_path, ago_s=3)
    bench.broken.add("r0/proxy-0")
    with pytest.raises(TestbedError, match="r0/proxy-0 is not running"):
        asyncio.run(bench.faults.ask({"kill": "r0/proxy-0"}))
    assert (bench.record.content.changes, bench.faults.names) == ((), [])
    bench.broken.clear()
    asyncio.run(bench.faults.ask({"kill": "r0/proxy-0"}))
    assert bench.planned == ["kill-1"]


def test_due_planned_changes_are_applied_first_and_distinguished(tmp_path):
    bench = Bench(tmp_path, ago_s=3, planned=PLANNED)
    asyncio.run(bench.faults.ask({"set": ["r0", "r1"], "delay": "80ms"}))
    assert bench.applied == [("own", "blackhole")] * 2 + [("own", "up")] * 2 + [("set-1", "up")] * 2
    assert [each.change.fault for each in bench.faults.happened] == ["own"] * 4
    assert bench.faults.now()["links"]["r0-r1 forward"] == "delay 80ms"


def test_a_timed_fault_ends_at_its_time(tmp_path):
    bench = Bench(tmp_path, ago_s=3)

    async def until_it_ended() -> None:
        await bench.faults.ask({**CUT, "for": "50ms"})
        working = asyncio.create_task(bench.faults.execute())
        while len(bench.faults.happened) < 2:
            await asyncio.sleep(0.01)
        working.cancel()

    asyncio.run(until_it_ended())
    assert [state for _, state in bench.applied] == ["blackhole"] * 2 + ["up"] * 2
    assert bench.faults.now()["links"] == {}
