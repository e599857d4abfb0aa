"""Examination of all machines of an inventory at once.

There is one command per machine, which carries a small program (`testbed.machines.examination`). The program
answers with facts and then reads its clock on request. `testbed.machines.findings` evaluates the facts.

A separate check, which needs a plan, determines whether a run's captures fit on the machines.
"""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from experiments.child_python import program_command
from experiments.planned.plan import Plan
from testbed.capturing import icmp
from testbed.capturing.capture_size import disk_needed_bytes
from testbed.errors import MachineError, TestbedError
from testbed.findings import Finding, FindingState
from testbed.machines import examination, run_folders
from testbed.machines.archive import Archive
from testbed.machines.facts import ClockReading, Facts, best_reading, read_facts, read_time_ns, request
from testbed.machines.findings import judge, unreachable
from testbed.machines.inventory import Inventory, InventoryMachine
from testbed.machines.parallel import on_each
from testbed.machines.placement import Placement
from testbed.machines.software import trusted_folders
from testbed.machines.software.deploy import PYTHON, sent_program
from testbed.machines.ssh import time_limit
from testbed.machines.ssh.ssh import RemoteProcess, SshConnection, UnreachableError, how_ended
from testbed.runner.run_control import DISK_RESERVE_BYTES

CLOCK_READINGS = 8
ANSWER_S = 30.0
LINE_BYTES_MAX = 4 << 20


@dataclass(frozen=True, slots=True)
class ExaminedMachine:
    """A machine, its facts (None if it did not answer) and the findings."""

    machine: InventoryMachine
    findings: tuple[Finding, ...]
    facts: Facts | None = None
    clock: ClockReading | None = None

    @property
    def missing(self) -> tuple[Finding, ...]:
        """The findings that prevent runs on it."""
        return tuple(finding for finding in self.findings if finding.state is FindingState.MISSING)


def examine(
    inventory: Inventory,
    connections: Sequence[SshConnection | TestbedError],
    archive: Archive,
) -> list[ExaminedMachine]:
    """Examine all machines, in the inventory's order.

    connections: to each machine, or why there is none. archive: the code that would be deployed.
    """
    by_name = dict(zip((machine.name for machine in inventory.machines), connections, strict=True))

    def one(machine: InventoryMachine) -> ExaminedMachine:
        connection = by_name[machine.name]
        if isinstance(connection, TestbedError):
            return ExaminedMachine(machine, unreachable(machine, connection))
        try:
            facts, clock = _run_examination(connection, request(inventory, machine))
        except TestbedError as error:
            return ExaminedMachine(machine, unreachable(machine, error))
        found = judge(inventory, machine, facts, clock, archive.sha256)
        return ExaminedMachine(machine, found, facts, clock)

    results = on_each(one, inventory.machines)
    return [result for result in results if not isinstance(result, TestbedError)]


def raise_if_unfit(examined: Sequence[ExaminedMachine]) -> None:
    """Raise MachineError, with all problems and remedies, if a machine cannot take part."""
    problems = [
        f"{each.machine.name}: {finding.problem}" + (f" -> {finding.remedy}" if finding.remedy else "")
        for each in examined
        for finding in each.missing
    ]
    if problems:
        raise MachineError("; ".join(problems))


def _run_examination(connection: SshConnection, asked: dict[str, Any]) -> tuple[Facts, ClockReading]:
    """Run the examination program. Raises TestbedError."""
    program = sent_program(time_limit, trusted_folders, run_folders, icmp, examination)
    with connection.open(program_command(program, python=PYTHON), root=True) as process:
        process.timeout_s = ANSWER_S
        name = connection.machine.name
        with suppress(UnreachableError):  # it may end before it has read the request; its output explains why
            process.write(json.dumps(asked).encode() + b"\n")
        facts = read_facts(_next_line(process, name))
        readings = []
        for _ in range(CLOCK_READINGS):
            before_ns = time.time_ns()
            process.write(b"\n")
            there_ns = read_time_ns(_next_line(process, name))
            readings.append((before_ns, there_ns, time.time_ns()))
        return facts, best_reading(readings)


def _next_line(process: RemoteProcess, name: str) -> bytes:
    """Return the next line. Raises TestbedError, with the process's standard error, if there is none."""
    line = process.read_line(LINE_BYTES_MAX)
    if line.endswith(b"\n"):
        return line
    code = process.wait()
    said = process.error_output()
    if "sudo" in said:
        raise MachineError(
            f"{name}: runs need root, and sudo asks for a password ({said}): log in as root, or"
            " allow this user sudo without a password (visudo: `USER ALL=(ALL) NOPASSWD: ALL`)"
        )
    if code == 127:
        raise MachineError(f"{name}: {PYTHON} is missing ({said}): `apt-get install {PYTHON}`")
    raise TestbedError(f"{name}: cannot be examined: {said or how_ended(code)}")


def check_disk_space(plan: Plan, placement: Placement, examined: Sequence[ExaminedMachine]) -> None:
    """Check that the captures fit. Raises MachineError with all machines whose disk is too small."""
    free_bytes = {each.machine.name: each.facts.folder.free_bytes for each in examined if each.facts}
    problems = []
    for machine in placement.machines:
        needed = needed_bytes(plan, len(placement.hosts(machine)))
        if free_bytes[machine.name] < needed:
            problems.append(
                f"{machine.name}: its captures need about {needed >> 20} MiB below {machine.folder}, but only"
                f" {free_bytes[machine.name] >> 20} MiB are free"
            )
    if problems:
        advice = "name another `folder:` in the inventory, or choose a shorter run or a snap length"
        raise MachineError(f"{'; '.join(problems)}: {advice}")


def needed_bytes(plan: Plan, hosts: int) -> int:
    """Return the disk space for a machine with this number of the plan's hosts.

    All hosts are assumed to capture the same amount.
    """
    return disk_needed_bytes(plan) * hosts // len(plan.hosts) + DISK_RESERVE_BYTES
