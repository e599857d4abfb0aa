"""Captures must fit on each machine that makes them."""

from dataclasses import replace

import pytest

from experiments.planned.plan import Plan
from testbed.capturing.capture_size import disk_needed_bytes
from testbed.errors import MachineError
from testbed.machines.checks import ExaminedMachine, check_disk_space, needed_bytes
from testbed.machines.facts import Folder
from testbed.machines.placement import place
from tests.testbed.capturing.test_capture_size import plan
from tests.testbed.machines.test_findings import FIT, inventory, machine

MACHINES = inventory(*(machine(number) for number in range(4)))


def room(run: Plan, *free_bytes: int) -> None:
    examined = [
        ExaminedMachine(each, (), replace(FIT, folder=Folder(free, (), None)))
        for each, free in zip(MACHINES.machines, free_bytes, strict=True)
    ]
    check_disk_space(run, place(run, MACHINES), examined)


def test_each_machine_needs_room_for_its_share_alone() -> None:
    run = plan()
    share = needed_bytes(run, len(run.hosts) // 4)
    assert disk_needed_bytes(run) / 4 < share < disk_needed_bytes(run) / 2
    room(run, share, share, share, share)


def test_a_run_is_refused_with_all_machines_that_are_too_full() -> None:
    run = plan()
    share = needed_bytes(run, len(run.hosts) // 4)
    with pytest.raises(MachineError) as error:
        room(run, share, share - 1, share, 0)
    assert "h1: its captures need about" in str(error.value)
    assert "h3: its captures need about" in str(error.value)
    assert "only 0 MiB are free" in str(error.value)
    assert "h0" not in str(error.value)
    assert "`folder:`" in str(error.value)
