"""A check, before a run starts, that all its machines have what its system's programs need.

A program is required on the machines with processes of a role that names it; a program that no role names
(for example, one that scripts start) on all machines. Python modules are sent with our code
(`testbed.machines.software.program_files`).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from experiments.planned.plan import Plan
from node.core.program import Need, Programs
from systems.needs import roles_naming
from testbed.errors import MachineError
from testbed.machines.archive import Archive
from testbed.machines.facts import SanitizedText, ask
from testbed.machines.inventory import InventoryMachine
from testbed.machines.parallel import all_or_raise, on_each
from testbed.machines.placement import Placement
from testbed.machines.software.deploy import code_folder, our_python
from testbed.machines.ssh.connection_pool import ConnectionPool

ANSWER_TIMEOUT_S = 120.0  # each program is started once, to print its version
VERSION_CHARACTERS_MAX = 200
PROGRAM = "testbed.machines.software.program_needs"

Versions = Mapping[str, str | None]
"""Versions by the name of the need; None: unknown."""


@dataclass(frozen=True, slots=True)
class _Answer:
    missing: tuple[SanitizedText, ...]
    versions: Mapping[SanitizedText, SanitizedText | None]


_ANSWER = TypeAdapter(_Answer)


def needs_by_machine(plan: Plan, placement: Placement) -> dict[str, tuple[Need, ...]]:
    """Return the needs of each machine of a run, by its name."""
    if plan.programs is None:
        return {}
    roles = {process.host: process.role for process in plan.processes}
    return {
        machine.name: needs_of(
            plan.programs, {roles[host] for host in placement.hosts(machine) if host in roles}
        )
        for machine in placement.machines
    }


def needs_of(programs: Programs, roles: set[str]) -> tuple[Need, ...]:
    """Return the needs of a machine on which these roles run."""
    return tuple(
        need
        for need in programs.needs
        if roles and (need.kind == "module" or (roles_naming(need, programs.roles) or roles) & roles)
    )


def check_on_machines(
    plan: Plan, placement: Placement, connections: ConnectionPool, archive: Archive
) -> dict[str, Versions]:
    """Check all machines, to which `archive` is deployed; returns the versions of their needs.

    Raises MachineError with all missing needs, their machines and remedies; TestbedError.
    """
    needs = needs_by_machine(plan, placement)

    def one(machine: InventoryMachine) -> Versions:
        return _check(plan.system, machine, needs[machine.name], connections, archive)

    asked = [machine for machine in placement.machines if needs.get(machine.name)]
    found = all_or_raise(on_each(one, asked))
    return {machine.name: versions for machine, versions in zip(asked, found, strict=True)}


def lacking_line(system: str, machine: str, lacking: Sequence[Need]) -> str:
    """Return the message about what a machine lacks for a system."""
    needs = ", ".join(f"`{need.name}` ({need.get})" for need in lacking)
    return f"{machine}: {system} needs software that is not installed there: {needs}"


def versions_of_run(by_machine: Mapping[str, Versions]) -> dict[str, str | None]:
    """Return the versions of a run: one version if all machines have the same, else each machine's."""
    names = dict.fromkeys(name for versions in by_machine.values() for name in versions)
    found: dict[str, str | None] = {}
    for name in names:
        said = {machine: versions[name] for machine, versions in by_machine.items() if name in versions}
        different = dict.fromkeys(said.values())
        if len(different) == 1:
            found[name] = next(iter(different))
        else:
            found[name] = "; ".join(f"{machine}: {each or 'unknown'}" for machine, each in said.items())
    return found


def _check(
    system: str,
    machine: InventoryMachine,
    needs: Sequence[Need],
    connections: ConnectionPool,
    archive: Archive,
) -> Versions:
    command = [*our_python(code_folder(machine, archive)), "-m", PROGRAM]
    request = [dataclasses.asdict(need) for need in needs]
    answer = ask(
        connections.to(machine),
        command,
        request,
        _ANSWER,
        timeout_s=ANSWER_TIMEOUT_S,
        doing="check what its programs need",
    )
    lacking = [need for need in needs if need.name in answer.missing]
    if lacking:
        raise MachineError(lacking_line(system, machine.name, lacking))
    asked = [need.name for need in needs]
    return {name: (answer.versions.get(name) or "")[:VERSION_CHARACTERS_MAX] or None for name in asked}
