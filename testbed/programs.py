"""The programs of a plan whose nodes are programs: how each process is launched, and what they require.

Pure, except that `check_programs` unpacks images, and `check_needs` and `versions_of` inspect this machine.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.declared import Trait, programs_of
from experiments.planned.plan import Plan
from experiments.records.rundir import RunDirectory
from node.core.marker import MARKER_BYTES
from node.core.program import SEARCH_PATH, Image, Need, Programs
from node.programs.faked_clock import why_not_faked
from node.programs.image_view import NoSuchUserError, user_of
from systems.images.archives import ImageError
from systems.images.layers import debian_version, inside, no_place, why_not_run
from systems.images.store import ensure_unpacked, root_of
from systems.needs import MODULES, missing, version_of
from systems.rendering import TemplateContext, program_of
from testbed.errors import MachineError
from testbed.execution.contacts import member_of
from testbed.faults.clocks import wrong_clocks
from testbed.sandbox.requirements import has_other_users, search_path
from topologies.document import dotted, read_document
from topologies.errors import InputError
from topologies.quantities import SIZE

if TYPE_CHECKING:
    from experiments.model import Experiment

USERS = ("etc/passwd", "etc/group")
LAUNCHER = "node.tcp.launcher"
"""The module that starts all nodes of a run."""
CLIENT = Path(__file__).resolve().parents[1] / "systems" / "client"
"""The folder in which programs find `cutset_client`."""


def check_programs(plan: Plan) -> None:
    """Raise InputError if a template does not fit, an image lacks its program, or events are too small."""
    if plan.programs is None:
        return
    _check_images(plan, plan.programs, launches_of(plan, RunDirectory(Path("/run-directory"))))
    size = plan.workload["event_size_bytes"]
    if size < MARKER_BYTES and plan.having(Trait.PUBLISHER):
        said = f"{SIZE.format(size)} is too small: the marker of a program's event takes {MARKER_BYTES} B"
        raise InputError(plan.experiment, None, "workload.event_size", said)


def _check_images(plan: Plan, programs: Programs, launches: Mapping[str, Mapping[str, Any]]) -> None:
    """Unpack the images, and check that each can run its role's program. Raises InputError."""
    for process in plan.processes:
        image, launch = programs.roles[process.role].image, launches[process.name]
        if image is None:
            continue
        try:
            ensure_unpacked(image, keeps_owners=launch["keeps_owners"])
            unfit = _unfit(image, launch, programs.folder)
        except (ImageError, ValueError) as error:
            unfit = "image", str(error)
        except OSError as error:  # its own text would name a place in the store
            unfit = "image", f"{image.source}: {error.strerror}"
        if unfit is not None:
            field, problem = unfit
            at = ("roles", process.role, field)
            raise InputError(programs.file, _line_of(programs, at), dotted(at), problem)


def _line_of(programs: Programs, at: tuple[str, ...]) -> int | None:
    try:
        return read_document(Path(programs.folder, Path(programs.file).name)).line_of(at)
    except InputError:  # an archived run is repeated, and its system's file has changed or gone
        return None


def _unfit(image: Image, launch: Mapping[str, Any], system_folder: str) -> tuple[str, str] | None:
    """Return a field of a role that its image cannot have, and why; None if the image fits.

    Raises ValueError, OSError.
    """
    root, folder = Path(launch["image_root"]), image.folder or launch["folder"]
    run, env, files, user = (launch["program"][field] for field in ("run", "env", "files", "user"))
    if run[0] not in files and not run[0].startswith((launch["folder"], system_folder)):
        problem = why_not_run(root, run[0], folder, env.get("PATH", SEARCH_PATH))
        if problem is not None:
            return "run", f"{image.source} {problem}"
    if problem := no_place(root, folder, files):
        return "image", f"{image.source}: {problem}"
    if launch["keeps_owners"]:
        try:
            user_of(user, *(inside(root, each, follows=True) for each in USERS))
        except NoSuchUserError as error:
            return "user", str(error)
    return None


def launches_of(plan: Plan, run: RunDirectory, system_folder: str = "") -> Mapping[str, Mapping[str, Any]]:
    """Return `node.programs.launch.Launch` of each process as JSON; empty for a system of machines.

    system_folder: the folder of the system's file, if it is not where the plan says.
    """
    programs = plan.programs
    if programs is None:
        return {}
    if system_folder:
        programs = replace(programs, folder=system_folder)
    members = members_of(plan)
    around = TemplateContext(members, [each.name for each in plan.regions], plan.parameters, sys.executable)
    shared = {
        "python_path": os.pathsep.join(map(str, (CLIENT, MODULES))),
        "published": plan.declared.contract.published,
        "since": plan.declared.contract.since,
        "system": programs.folder,
    }
    keeps_owners = has_other_users()
    roots = {
        role: str(root_of(program.image, keeps_owners=keeps_owners)) if program.image else None
        for role, program in programs.roles.items()
    }
    return {
        member["name"]: {
            **shared,
            "traits": plan.declared.roles[member["role"]],
            "folder": (folder := str(run.program(member["host"]))),
            "program": asdict(program_of(programs, member, around, folder)),
            "image_root": roots[member["role"]],
            "keeps_owners": keeps_owners,
            "key_log": str(run.program_key_log(member["host"])) if plan.declared.logs_keys else None,
        }
        for member in members
    }


def members_of(plan: Plan) -> list[dict[str, Any]]:
    """Return all processes as they know each other."""
    addresses = {host.name: host.address for host in plan.hosts}
    return [member_of(process, addresses) for process in plan.processes]


def start_order(plan: Plan, names: Sequence[str]) -> list[list[str]]:
    """Return groups of processes that start together, each when the previous group is ready on all machines.

    The first group are servers, which may need each other; the second are clients that serve no others, which
    could not reach the servers before. A system of our own nodes is one group: nodes find each other in any
    order.
    """
    if plan.programs is None:
        return [list(names)]
    clients = {process.name for process in plan.having(Trait.PUBLISHER, Trait.SUBSCRIBER)}
    waiting = clients - {process.name for process in plan.having(Trait.SERVER)}
    return [[name for name in names if (name in waiting) is last] for last in (False, True)]


def longest_ready_s(plan: Plan) -> float:
    """Return how long a program may take until it is ready, in seconds; 0 without programs."""
    roles = plan.programs.roles.values() if plan.programs else ()
    return max((program.ready.within_us / 1e6 for program in roles), default=0.0)


def check_needs(plan: Plan) -> None:
    """Raise MachineError if this machine lacks something that the programs need, with how to get it."""
    lacking = lacking_of(plan.system, plan.programs)
    if lacking is not None:
        raise MachineError(lacking)
    if plan.programs is None:
        return
    for image in images_of(plan):
        try:
            ensure_unpacked(image, keeps_owners=has_other_users())
        except ImageError as error:
            raise MachineError(f"{plan.system}: image {image.source} {error}") from None
    launches = launches_of(plan, RunDirectory(Path("/run-directory")))
    for name in sorted(wrong_clocks(plan.changes)):
        if launches[name]["image_root"]:
            raise MachineError(f"the clock of {name} cannot be made wrong: its program is in an image")
        command = launches[name]["program"]["run"]
        if (problem := why_not_faked(command, search_path(os.environ))) is not None:
            raise MachineError(f"the clock of {name} cannot be made wrong: {problem}")


def images_of(plan: Plan) -> list[Image]:
    """Return the images of a plan's programs, each once."""
    roles = plan.programs.roles.values() if plan.programs else ()
    return list({each.image.digest: each.image for each in roles if each.image}.values())


def lacking_of(system: str, programs: Programs | None) -> str | None:
    """Return one line with what a system's programs need and this machine lacks, or None."""
    lacking = missing_here(programs) if programs else ()
    said = ", ".join(f"`{named(need)}` ({need.get})" for need in lacking)
    return f"{system} needs software that is not installed: {said}" if lacking else None


def lacking_of_experiment(experiment: "Experiment") -> str | None:
    """Return one line with what the programs of an experiment need and this machine lacks, or None."""
    try:
        return lacking_of(experiment.system, programs_of(experiment.system, experiment.images))
    except InputError as error:  # an image is not there
        return str(error)


def missing_here(programs: Programs) -> list[Need]:
    """Return the needs of these programs that are missing on this machine, or too old."""
    return list(missing(programs.needs, search_path(os.environ), Path(programs.folder)))


def named(need: Need) -> str:
    """Return the name of a need, with its minimum version."""
    return f"{need.name} {need.at_least} or later" if need.at_least else need.name


def versions_of(plan: Plan) -> dict[str, str | None]:
    """Return the versions of what the programs need, and the digests of their images, by name."""
    if plan.programs is None:
        return {}
    images = {
        each.source.rpartition("/")[2]: f"{each.digest} {each.version}".rstrip() for each in images_of(plan)
    }
    inside = {
        (program := next(iter(role.run or role.image.run)).rpartition("/")[2]): debian_version(root, program)
        for role in plan.programs.roles.values()
        if role.image and (root := root_of(role.image, keeps_owners=has_other_users()))
    }
    path, folder = search_path(os.environ), Path(plan.programs.folder)
    needed = {need.name: version_of(need, path, folder) for need in plan.programs.needs}
    return images | {name: version for name, version in inside.items() if version} | needed
