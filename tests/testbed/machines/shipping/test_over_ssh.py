"""Shipping over real SSH connections, from machines of the lab (`tests.testbed.machines.lab`)."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.machines.inventory import InventoryMachine, load_inventory
from testbed.machines.shipping.receiver import MachineSource
from tests.testbed.leftovers import wait_until
from tests.testbed.machines.lab import NEEDS_LAB, ControllerProcess, Lab
from tests.testbed.machines.shipping.machines import noise, read_files, write_files

MIB = 1 << 20
CONTROLLER = [sys.executable, "-m", "tests.testbed.machines.shipping.controller"]
SENDER = "testbed.machines.shipping.sender"
SHIPPING_S = 120.0

pytestmark = NEEDS_LAB


@pytest.fixture
def files(pair: Lab, tmp_path: Path) -> dict[str, bytes]:
    """Write files on the machines below the run that is named like the test's folder; return them by local
    path.
    """
    expected: dict[str, bytes] = {}
    for number, machine in enumerate(pair.machines.values()):
        captures = {f"captures/r{number}-proxy-{each}-eth0.pcap": noise(4 * MIB, each) for each in range(3)}
        write_files(machine.path(f"{machine.folder}/runs/{tmp_path.name}"), {**captures, "run.json": b"{}"})
        expected |= captures | {f"machines/{machine.name}/run.json": b"{}"}
    return expected


def start(pair: Lab, tmp_path: Path, *options: str | Path) -> ControllerProcess:
    """Begin to ship the run that is called as the test's folder; returns once machines are asked."""
    process = pair.popen([*CONTROLLER, pair.inventory, tmp_path.name, tmp_path / "run", *options], stdout=-1)
    assert process.stdout is not None
    assert process.stdout.readline() == "shipping\n"
    return process


def result(process: ControllerProcess) -> dict[str, Any]:
    """Return the result of each machine."""
    said, _ = process.communicate(timeout=SHIPPING_S)
    shipped: dict[str, Any] = json.loads(said.splitlines()[-1])
    return shipped


def wait_until_connected(process: ControllerProcess, *names: str) -> None:
    """Until each of these has a connection that it had not before."""
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in names]
    assert sorted(said) == [f"connected {name}\n" for name in sorted(names)]


def wait_for_bytes(run: Path, bytes_min: float) -> None:
    """Until so much is here."""
    wait_until(lambda: size(run) >= bytes_min, f"{bytes_min} bytes", SHIPPING_S)


def size(run: Path) -> int:
    """Return the number of received bytes."""
    return sum(path.stat().st_size for path in run.rglob("*") if path.is_file())


def test_connections_that_are_cut_three_times_ship_everything(
    pair: Lab, files: dict[str, bytes], tmp_path: Path
) -> None:
    pair.slow_control(100_000_000)
    process = start(pair, tmp_path, "--follow", tmp_path / "over")
    for share in (0.2, 0.5, 0.8):
        wait_until_connected(process, *pair.machines)
        wait_for_bytes(tmp_path / "run", share * sum(map(len, files.values())))
        for machine in pair.machines.values():
            assert machine.kill_connections()
    pair.slow_control(None)
    (tmp_path / "over").touch()
    shipped = result(process)
    assert read_files(tmp_path / "run") == files
    for one in shipped.values():
        assert one["complete"]
        assert one["connections"] == 4
        assert one["wire_bytes"] < 12 * MIB + 3 * 13 * MIB / 10


@pytest.mark.parametrize(("lease_s", "idle_s"), [(5.0, "5"), (7.5, "7"), (3600.0, "60")])
def test_a_sender_that_is_asked_nothing_does_not_outlive_the_lease(
    tmp_path: Path, lease_s: float, idle_s: str
) -> None:
    inventory = tmp_path / "lab.yaml"
    inventory.write_text("inventory: lab\nmachines: [{name: h0, control: h0, experiment: 10.10.1.10}]")
    machine: InventoryMachine = load_inventory(inventory).machines[0]
    command = MachineSource(machine, "/f/runs/x", "/f/code/1", lease_s=lease_s).command()
    assert command[command.index("--idle") + 1] == idle_s
