"""Execution of plans on the machines of an inventory, each with its assignment.

Once: log in to all machines, examine them, deploy our code. Before each run: deploy further code and files
that its system needs, and check that its programs are installed. For each run: start a supervisor on each
machine that the plan needs, coordinate them (`testbed.machines.coordinator`), ship their files into one run
directory during the run or at its end, merge their run.json files, and remove the run's folder from machines
whose files have all arrived.
"""

import contextlib
import queue
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from experiments.declared import Trait, distributions_of, is_sent
from experiments.planned.plan import Plan
from experiments.records.run_record import InventoryRecord, RunRecord, record_to_json, write_record
from experiments.records.rundir import RunDirectory
from testbed.assignment import assignment_to_json
from testbed.errors import MachineError, TestbedError
from testbed.links.abilities import with_links_that_can
from testbed.machines.archive import NOTHING, Archive, machine_archive
from testbed.machines.checks import ExaminedMachine, check_disk_space, examine, raise_if_unfit
from testbed.machines.coordinator import Coordinator
from testbed.machines.inventory import Inventory, InventoryMachine, ShippingTime
from testbed.machines.merging import machine_shares
from testbed.machines.placement import Placement, adapted, assignments, first_network, place
from testbed.machines.run_folders import LEFT, agent_arguments
from testbed.machines.shipping.fetching import remove_folder, state_there
from testbed.machines.shipping.limits import ShippingLimits
from testbed.machines.shipping.parts import write_merged
from testbed.machines.shipping.receiver import MachineSource, ship
from testbed.machines.shipping.result import ShippingResult
from testbed.machines.software.deploy import code_folder, deploy, our_python
from testbed.machines.software.images import send_images
from testbed.machines.software.needed_programs import Versions, check_on_machines, versions_of_run
from testbed.machines.software.program_files import DISTRIBUTIONS, SYSTEM_FOLDER, attached
from testbed.machines.ssh.connection_pool import ConnectionPool, connected
from testbed.machines.ssh.ssh import SshConnection
from testbed.machines.supervisor_client import Events, SupervisorClient
from testbed.runner.run_control import Follow, RunResult, check_disk, interruptible
from topologies.errors import InputError

LOOK_S = 0.25


class SshBackend:
    """The machines of an inventory, logged in to: a context manager.

    show: called with the capabilities of all machines.
    """

    def __init__(
        self,
        inventory: Inventory,
        say: Callable[[str], None],
        show: Callable[[Sequence[ExaminedMachine]], None] = lambda _: None,
    ) -> None:
        self._inventory = inventory
        self._say = say
        self._show = show
        self._stack = contextlib.ExitStack()
        self._archive: Archive
        self._archives: dict[str, Archive] = {}  # by system, if it needs more than the first
        self._versions: dict[
            str, Mapping[str, Versions]
        ] = {}  # of a system's programs: by system and machine
        self._brought: set[tuple[str, str]] = set()  # machine and archive
        self._connections: ConnectionPool
        self.examined: list[ExaminedMachine] = []
        """The capabilities of each machine."""

    def __enter__(self) -> Self:
        """Log in, examine and deploy. Raises MachineError, with all problems, if a machine is not usable."""
        with contextlib.ExitStack() as stack:
            self._say(f"logging in to {len(self._inventory.machines)} machines")
            connections = stack.enter_context(connected(self._inventory.machines))
            self._archive = archive = machine_archive()
            self._say("examining them")
            self.examined = examine(self._inventory, connections, archive)
            self._show(self.examined)
            raise_if_unfit(self.examined)
            here = [connection for connection in connections if isinstance(connection, SshConnection)]
            self._connections = ConnectionPool(here)
            stack.callback(self._connections.close)
            sent = sum(deploy(here, archive))
            if sent:
                self._say(f"deployed our code to {sent} of them")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def adapted(self, plan: Plan) -> Plan:
        """Return the plan for these machines; see `Backend`."""
        if plan.triggered:
            problem = f"{plan.triggered[0].fault} waits for a message, which needs a run on this machine"
            raise InputError(
                plan.experiment, None, "faults", f"{problem}: use --on local, or remove its `when`"
            )
        if plan.traffic:
            problem = "is not supported on the machines of an inventory: use --on local"
            raise InputError(plan.experiment, None, "traffic", problem)
        if plan.routing:
            problem = "on the machines of an inventory routes are fixed: use --on local"
            raise InputError(plan.experiment, None, "topology.routing", problem)
        if plan.programs is None and not is_sent(plan.system):
            raise MachineError(
                f"{plan.system} is a system of an installed package, which is not sent to machines: give its"
                " file with --system-module"
            )
        plan = with_links_that_can(plan)
        placement = place(plan, self._inventory)
        return adapted(plan, self._inventory, placement, self._mtu_bytes(placement))

    def check(self, out: Path, plan: Plan) -> None:
        """Check disk space for the captures and deploy what this plan needs; see `Backend`.

        The machines have already been examined. Raises MachineError, too, if one lacks what its programs
        need.
        """
        placement = place(plan, self._inventory)
        check_disk(out, plan)
        check_disk_space(plan, placement, self.examined)
        archive = self._deploy(plan, placement)
        if plan.programs is not None:
            if sent := send_images(plan, placement, self._connections, archive):
                self._say(f"sent images of {plan.system} to {sent} of them")
            found = check_on_machines(plan, placement, self._connections, archive)
            self._versions[plan.system] = found

    def execute(self, run: RunDirectory, follow: Follow) -> RunResult:
        """Execute a run; see `Backend`."""
        system = run.read_run().plan.system
        archive, versions = self._archives.get(system, self._archive), self._versions.get(system, {})
        return _Run(run, self._inventory, self._connections, archive, follow, versions=versions).execute()

    def _deploy(self, plan: Plan, placement: Placement) -> Archive:
        """Deploy the modules that the plan's nodes import, or the folder and modules of its programs.

        Raises InputError, MachineError, TestbedError.
        """
        if plan.programs is None:
            what, more, also = "modules", distributions_of(plan.system), NOTHING
        else:
            what, more, also = "files", DISTRIBUTIONS, attached(plan.system, plan.programs)
        if not more:
            return self._archive
        self._archives[plan.system] = archive = machine_archive(more=more, attached=also)
        lacking = [each for each in placement.machines if (each.name, archive.sha256) not in self._brought]
        sent = sum(deploy([self._connections.to(machine) for machine in lacking], archive))
        self._brought |= {(machine.name, archive.sha256) for machine in lacking}
        if sent:
            self._say(f"deployed {what} of {plan.system} to {sent} of them")
        return archive

    def _mtu_bytes(self, placement: Placement) -> int:
        """Return the MTU of the experiment network, as the machines report it for their interfaces."""
        taking_part = {machine.name for machine in placement.machines}
        return min(
            each.facts.addresses[address].mtu
            for each in self.examined
            if each.machine.name in taking_part and each.facts is not None
            for address in each.machine.addresses
        )


class _Run:
    """One run on the machines."""

    def __init__(
        self,
        run: RunDirectory,
        inventory: Inventory,
        connections: ConnectionPool,
        archive: Archive,
        follow: Follow,
        *,
        versions: Mapping[str, Versions],
    ) -> None:
        """Prepare a run. versions: of the needed programs, by machine."""
        self._run = run
        self._inventory = inventory
        self._lease_s = inventory.lease_us / 1e6
        self._archive = archive
        self._follow = follow
        self._versions = versions
        self._record = run.read_run()
        self._plan = self._record.plan
        self._placement = place(self._plan, inventory)
        self._assignments = assignments(self._plan, inventory, self._placement, first_network(run.full_name))
        self._events: Events = queue.SimpleQueue()
        self._connections = connections
        self._peers = [self._peer(machine) for machine in self._placement.machines]
        self._led = False  # the run is over, and only files are awaited
        self._impatient = False  # the user does not wait for them
        self._shipped: dict[str, ShippingResult] = {}

    def execute(self) -> RunResult:
        clients = {
            name: sum(process.host in assignment.hosts for process in self._plan.having(Trait.SUBSCRIBER))
            for name, assignment in self._assignments.items()
        }
        coordinator = Coordinator(
            {peer.name: peer for peer in self._peers},
            self._events,
            self._follow,
            clients=clients,
            duration_us=self._plan.duration_us,
            contract=self._plan.declared.contract,
        )
        with interruptible(self._hear_user) as user:
            self._note_where(coordinator)
            try:
                self._start()
                self._lead(coordinator)
            finally:  # also after errors and a second Ctrl-C: record what arrived
                for peer in self._peers:
                    peer.log_out()
                record = self._merge(coordinator)
                self._remove_folders()
        if coordinator.failed and record.times.zero_ns is None:
            kind = MachineError if coordinator.failed["kind"] == "machine" else TestbedError
            raise kind(coordinator.failed["text"])
        return RunResult(record, by_user=user.asked)

    def _note_where(self, coordinator: Coordinator) -> None:
        """Record which machines have files of the run, so that they can be fetched if this process dies."""
        file = str(Path(self._inventory.file).absolute())
        self._record = replace(
            self._record,
            inventory=InventoryRecord(file, self._archive.sha256),
            machines=machine_shares(self._placement, coordinator.zeros, {}, self._versions),
            versions=self._record.versions | versions_of_run(self._versions),
            shaping=str(self._inventory.shaping),
        )
        write_record(self._run.run_json, self._record)

    # --- Machines

    def _peer(self, machine: InventoryMachine) -> SupervisorClient:
        def command(what: str) -> list[str]:
            ours = our_python(code_folder(machine, self._archive))
            return [*ours, *agent_arguments(what, machine.run_folder(self._run))]

        return SupervisorClient(
            machine, lambda: self._connections.to(machine), command, self._events, self._lease_s
        )

    def _start(self) -> None:
        for peer in self._peers:
            code = code_folder(peer.machine, self._archive)
            assignment = replace(
                self._assignments[peer.name],
                system_folder=f"{code}/{SYSTEM_FOLDER}" if self._plan.programs is not None else "",
            )
            content = record_to_json(replace(self._record, assignment=assignment_to_json(assignment)))
            given = {"run": content, "lease_s": self._lease_s}
            peer.start(given)

    def _hear_user(self, message: dict[str, Any]) -> None:
        self._impatient = self._led
        self._events.put(("", message))

    # --- Files

    def _lead(self, coordinator: Coordinator) -> None:
        """Conduct the run, and ship files during or after it, as the inventory says.

        After a KeyboardInterrupt, files that have not arrived stay on the machines.
        """
        pool = ThreadPoolExecutor(1, thread_name_prefix="shipping")
        shipping = None
        try:
            if self._inventory.shipping.when is ShippingTime.DURING:
                shipping = pool.submit(self._ship, coordinator)
            coordinator.lead()
            self._led = True
            shipping = shipping or pool.submit(self._ship, coordinator)
            while not wait([shipping], LOOK_S).done:
                self._follow({})
        except BaseException:
            self._impatient = True
            if shipping is not None:
                wait([shipping])
            raise
        finally:
            pool.shutdown(wait=False)
        shipping.result()

    def _ship(self, coordinator: Coordinator) -> None:
        during_run = self._inventory.shipping.when is ShippingTime.DURING
        lease_us = self._inventory.lease_us
        sources = [
            MachineSource.of_run(self._run, machine, self._archive, lease_us, during_run=during_run)
            for machine in self._placement.machines
        ]
        limits = ShippingLimits(self._inventory.shipping.rate_bits_per_s, self._inventory.shipping.disk_bytes)
        self._shipped = ship(
            sources,
            self._run.path,
            limits=limits,
            listener=self._follow,
            stop_following=lambda name: name in coordinator.ended | coordinator.lost,
            give_up=lambda name: self._impatient or (self._led and name in coordinator.unreachable),
        )
        for machine in self._placement.machines:
            result = self._shipped.get(machine.name)
            if machine.name in coordinator.unreachable and result is not None and result.complete:
                self._shipped[machine.name] = replace(result, problem=self._not_over(machine))

    def _not_over(self, machine: InventoryMachine) -> str:
        """Return why files may still grow on a machine that has not reported the run's end; "" if not."""
        try:
            state = state_there(self._connections.to(machine), self._archive, machine.run_folder(self._run))
        except TestbedError as error:
            return f"it is unknown whether the run has ended there: {error}"
        if state == LEFT:
            return ""
        return "the run has not ended there: `cutset fetch` waits for it, `cutset hosts --clean` ends it"

    def _merge(self, coordinator: Coordinator) -> RunRecord:
        order = [machine.name for machine in self._placement.machines]
        clocks = {peer.name: peer.clock.best for peer in self._peers}
        interrupted = {name: ShippingResult(name, "shipping was interrupted") for name in order}
        shipped = [(interrupted | self._shipped)[name] for name in order]
        lines = [line for each in shipped for line in each.lines()]
        base = replace(
            self._record,
            machines=machine_shares(self._placement, coordinator.zeros, clocks, self._versions),
            shipped=tuple(each.shipment() for each in shipped),
            problems=(*coordinator.problems, *lines),
        )
        return write_merged(self._run, base, order)

    def _remove_folders(self) -> None:
        """Remove the run's folder from the machines whose files have all arrived."""
        for machine in self._placement.machines:
            shipped = self._shipped.get(machine.name)
            if shipped is not None and shipped.complete:
                with contextlib.suppress(TestbedError):  # it is small, and `cutset hosts --clean` finds it
                    remove_folder(self._connections.to(machine), self._run)
