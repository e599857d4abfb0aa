"""Fetching of a run's files that are still on its machines.

Files remain there if the controller died, a connection was lost, or the disk was full. Files that have
arrived are only verified. If a machine's supervisor still waits for its controller, its files may grow: the
fetch waits, at most until the lease expires. Afterwards the run.json files of all machines are merged again,
and the run's folder is removed from machines whose files have all arrived.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from experiments.records.rundir import RunDirectory
from testbed.errors import TestbedError
from testbed.machines.archive import Archive
from testbed.machines.inventory import Inventory, InventoryMachine
from testbed.machines.parallel import on_each
from testbed.machines.run_folders import HELD, IN_USE
from testbed.machines.shipping.limits import ShippingLimits
from testbed.machines.shipping.parts import write_merged
from testbed.machines.shipping.receiver import Listener, MachineSource, ship
from testbed.machines.shipping.result import ShippingResult
from testbed.machines.software.deploy import code_folder, deploy_to, our_python
from testbed.machines.ssh.connection_pool import connected
from testbed.machines.ssh.ssh import SshConnection
from topologies.errors import InputError

LOOK_S = 1.0
TIDY_END_S = 120.0
"""The time that a run has to end after its lease has expired."""
REMOVE_TIMEOUT_S = 120.0
_STATE = """\
import json, pathlib, sys
from testbed.machines.run_folders import HELD, LEFT, state
run = pathlib.Path(sys.argv[1])
now = state(run)
if now == HELD and json.loads((run / "run.json").read_text())["outcome"] is not None:
    now = LEFT
print(now)
"""
"""A program that prints the state of a run. A run that is over counts as left: its supervisor only waits for
a fetch.
"""


def state_there(connection: SshConnection, archive: Archive, folder: str) -> str:
    """Return whether a run's folder on a machine is in use, held or left. Raises TestbedError.

    See `run_folders`.
    """
    machine = connection.machine
    command = [*our_python(code_folder(machine, archive)), "-c", _STATE, folder]
    answer = connection.run(command, root=True)
    if answer.code != 0:
        raise TestbedError(f"{machine.name}: cannot check the run there: {answer.why[-300:]}")
    return answer.stdout.decode(errors="replace").strip()


def remove_folder(connection: SshConnection, run: RunDirectory) -> None:
    """Remove a run's folder from a machine whose files have all arrived. Raises UnreachableError."""
    folder = connection.machine.run_folder(run)
    connection.run(["rm", "-rf", "--", folder], timeout_s=REMOVE_TIMEOUT_S, root=True)


@dataclass(frozen=True, slots=True)
class RunFetch:
    """One attempt. say: shows progress messages; listener: notified of each machine's progress."""

    run: RunDirectory
    inventory: Inventory
    archive: Archive
    limits: ShippingLimits
    listener: Listener
    say: Callable[[str], object]

    def fetch(self) -> dict[str, ShippingResult]:
        """Fetch all files; returns the results of the machines that had not shipped all their files.

        If the run still goes on on a machine, its result has that as the problem. Raises InputError if the
        inventory is not that of the run.
        """
        lacking = not_all_here(self.run)
        if not lacking:
            return {}
        machines = self._machines()
        asked = [each for each in machines if each.name in lacking]
        self.say(f"logging in to {', '.join(machine.name for machine in asked)}")
        with connected(asked) as connections:
            shipped = {
                machine.name: ShippingResult(machine.name, str(result))
                for machine, result in zip(asked, connections, strict=True)
                if isinstance(result, TestbedError)
            }
            here = [result for result in connections if isinstance(result, SshConnection)]
            for connection, result in zip(here, on_each(self._ready, here), strict=True):
                if isinstance(result, TestbedError):
                    name = connection.machine.name
                    shipped[name] = ShippingResult(name, str(result))
            ready = [connection for connection in here if connection.machine.name not in shipped]
            shipped |= self._ship([connection.machine for connection in ready])
            self._note(machines, shipped)
            on_each(self._remove, [each for each in ready if shipped[each.machine.name].complete])
        return shipped

    def _machines(self) -> list[InventoryMachine]:
        """Return the machines of the run, the reference first."""
        by_name = {machine.name: machine for machine in self.inventory.machines}
        names = _names(self.run)
        unknown = [name for name in names if name not in by_name]
        if unknown:
            problem = f"has no machine {', '.join(unknown)}, which {self.run.name} used"
            raise InputError(self.inventory.file, None, "machines", problem)
        return [by_name[name] for name in names]

    def _ready(self, connection: SshConnection) -> None:
        """Deploy our code and wait until no file grows any more."""
        machine = connection.machine
        deploy_to(connection, self.archive)
        patience_s = self.inventory.lease_us / 1e6 + TIDY_END_S
        deadline_s, said = time.monotonic() + patience_s, False
        while True:
            state = state_there(connection, self.archive, machine.run_folder(self.run))
            if state == IN_USE:
                raise TestbedError(f"{machine.name}: the run goes on there, and its controller is connected")
            if state != HELD:
                return
            if time.monotonic() > deadline_s:
                raise TestbedError(f"{machine.name}: the run does not end there: try `cutset hosts --clean`")
            if not said:
                self.say(
                    f"{machine.name}: waiting until its lease is over and the run has ended there, for"
                    f" {patience_s:g} s at most"
                )
                said = True
            time.sleep(LOOK_S)

    def _ship(self, machines: Sequence[InventoryMachine]) -> dict[str, ShippingResult]:
        if machines:
            self.say("fetching missing files, and checking those that are here")
        sources = [
            MachineSource.of_run(self.run, machine, self.archive, self.inventory.lease_us, during_run=False)
            for machine in machines
        ]
        return ship(
            sources,
            self.run.path,
            limits=self.limits,
            listener=self.listener,
            stop_following=lambda _: True,
        )

    def _note(self, machines: Sequence[InventoryMachine], shipped: dict[str, ShippingResult]) -> None:
        """Merge run.json from all parts that have arrived."""
        order, record = [machine.name for machine in machines], self.run.read_run()
        now = {each.machine: each for each in record.shipped}
        said = {line for each in record.shipped for line in each.said}
        now |= {name: one.shipment() for name, one in shipped.items()}
        base = replace(
            record,
            shipped=tuple(now[name] for name in order if name in now),
            problems=(
                *(line for line in record.problems if line not in said),
                *(line for one in shipped.values() for line in one.lines()),
            ),
        )
        write_merged(self.run, base, order)

    def _remove(self, connection: SshConnection) -> None:
        remove_folder(connection, self.run)


def not_all_here(run: RunDirectory) -> set[str]:
    """Return the machines that have not shipped all their files. Raises InputError if the run used none."""
    complete = {each.machine for each in run.read_run().shipped if each.complete}
    return set(_names(run)) - complete


def _names(run: RunDirectory) -> list[str]:
    """Return the names of the run's machines, the reference first. Raises InputError."""
    names = [each.name for each in run.read_run().machines]
    if not names:
        raise InputError(str(run.path), None, "", "used no machines: there is nothing to fetch")
    return names
