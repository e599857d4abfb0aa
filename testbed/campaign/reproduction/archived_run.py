"""A packed run, or one that is still here, with all data to reproduce it: its plan and its claims.

run.json holds the resolved plan: links, parameters, faults, published events and the seed. So the
experiments and topologies of this checkout are not used, only its code of the system.

An archive may come from anyone, and the programs of a system of programs are commands. They are started only
if they equal the programs of the system of that name here, or if the user trusts the archive.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from analysis.claims import SummaryClaim, claims, claims_from_json
from experiments.archives.packing import CLAIMS
from experiments.archives.unpacking import unpacked
from experiments.campaigns.sweep import OF_MANY_RUNS
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.declared import is_known_system, known_system, known_systems, programs_of
from experiments.files.scratch import scratch
from experiments.planned.plan import Plan, plan_to_json
from experiments.records.json_files import read_json
from experiments.records.run_record import RunRecord
from experiments.records.rundir import POINTS, RunDirectory
from node.core.program import Programs
from systems.names import is_path
from testbed.sweeps import digest_of
from topologies.errors import InputError
from topologies.first_texts import listed
from topologies.strict import suggestion

TRUST = "--trust-programs"


@dataclass(frozen=True, slots=True)
class ArchivedRun:
    """The record of a run, and its claims.

    name: as the user gave it. deliveries: for a run in virtual time, digests of its delivery records by file.
    """

    name: str
    record: RunRecord
    claims: tuple[SummaryClaim, ...]
    deliveries: Mapping[str, str]

    @property
    def experiment(self) -> dict[str, Any]:
        """The experiment of this run, without the fields that make several runs."""
        return {key: value for key, value in self.record.experiment.items() if key not in OF_MANY_RUNS}

    def plan(self) -> Plan:
        """Return the plan as it was before a backend adapted it and an older version split its captures."""
        plan = self.record.plan
        captures = tuple(replace(each, in_parts=False) for each in plan.captures if not each.wire)
        return replace(plan, captures=captures)

    def described(self) -> dict[str, Any]:
        """Return its inputs as plain JSON, for run.json."""
        return {"experiment": self.experiment, "topology": self.record.topology}

    def digest(self, backend: str, repeat: int) -> str:
        """Return a digest of all that determines the runs."""
        return digest_of({"plan": plan_to_json(self.plan()), "on": backend, "repeat": repeat})


@contextmanager
def opened_archive(archive: Path) -> Iterator[RunDirectory | SweepDirectory]:
    """Yield what an archive contains, unpacked into a temporary folder. Raises InputError."""
    with scratch(".unpacked-", Path.cwd()) as folder:
        path, _ = unpacked(archive, folder)
        is_sweep = SweepDirectory(path).sweep_json.is_file()
        yield SweepDirectory.open(path) if is_sweep else RunDirectory.open(path)


def read_archive(archive: Path, name: str, point: str | None, *, trust: bool) -> ArchivedRun:
    """Read the run in an archive. See `read_run` for the parameters."""
    with opened_archive(archive) as found:
        return read_run(found, name, point, trust=trust, packed=True)


def read_run(
    found: RunDirectory | SweepDirectory, name: str, point: str | None, *, trust: bool, packed: bool = False
) -> ArchivedRun:
    """Read a run with what is needed to reproduce it.

    name: as the user gave it. point: which run of a sweep. trust: whether to run programs that are unknown
    here. packed: whether the archive's claims file is required; other runs claim what their summary says.
    Raises InputError if it has no claims, or cannot be reproduced.
    """
    run = _run_of(found, name, point)
    record = run.read_run()
    path = run.path / CLAIMS
    if path.is_file():
        claimed = claims_from_json(read_json(path), f"{name}: {CLAIMS}")
    elif packed or not run.summary_json.is_file():
        why = f"it has no {CLAIMS}" if packed else "it was not analysed"
        raise InputError(name, None, "", f"claims nothing that could be reproduced: {why}")
    else:
        claimed = claims(run.read_summary())
    if record.shell is not None:
        problem = "was made at the prompt of `cutset shell`: manual commands cannot be reproduced"
        raise InputError(name, None, "", problem)
    delivered = {
        each.name: digest_of_file(each)
        for each in sorted(run.deliveries.glob("*") if record.simulated else ())
        if each.is_file() and not each.is_symlink()
    }
    plan = _with_programs(record.plan, record.experiment, name, trust=trust)
    return ArchivedRun(name, replace(record, plan=plan), tuple(claimed), delivered)


def _run_of(found: RunDirectory | SweepDirectory, name: str, point: str | None) -> RunDirectory:
    if isinstance(found, RunDirectory):
        if point is not None:
            raise InputError("--point", None, "", f"{name} is a single run, not a sweep with points")
        return found
    made = {run.name: run for run in found.read().made}
    if point is None:
        problem = f"is a sweep: name one of its runs with --point: {listed(made, 5)}"
        raise InputError(name, None, "", problem)
    if point not in made:
        raise InputError("--point", None, "", f"{name} has no run {point}{suggestion(point, list(made))}")
    return RunDirectory.open(found.path / POINTS / made[point].name)


def _with_programs(plan: Plan, experiment: Mapping[str, Any], name: str, *, trust: bool) -> Plan:
    """Return the plan with the folder that the system of programs has on this machine.

    experiment: in the form of its file. Raises InputError if the system is not known here, or would start
    programs that are unknown here.
    """
    if plan.programs is None:
        if not is_known_system(plan.system):
            known = suggestion(plan.system, known_systems())
            problem = f"there is no system {plan.system} here{known} (`cutset --system-module FILE` adds one)"
            raise InputError(name, None, "", problem)
        known_names = {field.name for field in fields(known_system(plan.system).parameters())}
        if strange := sorted(plan.parameters.keys() - known_names):
            problem = (
                f"has the parameter {strange[0]} of another version of {plan.system}: reproduce it there"
            )
            raise InputError(name, None, "", problem)
        return plan
    here = _programs_here(plan.system, experiment.get("system"), experiment.get("images"))
    if here is not None and _as_elsewhere(here) == _as_elsewhere(plan.programs):
        return replace(plan, programs=here)
    if not trust:
        problem = (
            f"would start other programs than {plan.system} has here: {TRUST} runs them anyway, "
            "if you trust the source of the archive"
        )
        raise InputError(name, None, "", problem)
    folder = plan.programs.folder if here is None else here.folder
    if not Path(folder).is_dir():
        raise InputError(name, None, "", f"needs the files of its system {plan.system}, which are not here")
    return replace(plan, programs=replace(plan.programs, folder=folder))


def _programs_here(name: str, system: object, images: Any) -> Programs | None:
    """Return the programs of the system of this name, or of the user's file if it still exists."""
    if name in known_systems():
        return programs_of(name, images)
    is_here = isinstance(system, str) and is_path(system) and Path(system).exists()
    return programs_of(str(system), images) if is_here else None


def _as_elsewhere(programs: Programs) -> Programs:
    """Return the programs without their folder and the places of images, to compare them between machines."""
    roles = {
        name: replace(role, image=role.image and replace(role.image, source="", version=""))
        for name, role in programs.roles.items()
    }
    return replace(programs, folder="", file=Path(programs.file).name, roles=roles)


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
