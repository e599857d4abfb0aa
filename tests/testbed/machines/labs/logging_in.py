"""Logging in to machines of a lab, as its controller does."""

import dataclasses
from pathlib import Path
from typing import Any

from testbed.machines.inventory import InventoryMachine
from testbed.machines.ssh.ssh import SshConnection, connect
from tests.testbed.leftovers import wait_until
from tests.testbed.machines.lab import Lab

LOGIN_S = 30.0


def log_in(lab: Lab, machine: InventoryMachine, **changes: Any) -> SshConnection:
    return lab.on_controller(lambda: connect(dataclasses.replace(machine, **changes), timeout_s=LOGIN_S))


def known_hosts(lab: Lab) -> Path:
    return lab.home / ".ssh/known_hosts"


def wait_until_nobody_is_logged_in(lab: Lab) -> None:
    wait_until(
        lambda: not any(machine.is_connected() for machine in lab.machines.values()),
        "the end of all sessions",
    )
