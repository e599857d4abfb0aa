"""A run that was packed, or is still here, as what it takes to make it again: its plan and its claims.

The plan stands in run.json, resolved: links, parameters, faults, what is published and the seed. So nothing
of this checkout's experiments or topologies is asked for; the system's own code is this checkout's. For other
seeds the experiment of run.json is planned anew, if that comes to the archive's plan for the archive's seed.

A run may come from anybody, and the programs of a system of programs are commands. They are started only if
they are those that the system of that name has here, or if the user trusts whoever packed the run.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from analysis.claims import Claim, claims, claims_from_json
from experiments.archives.crate import CLAIMS
from experiments.archives.unpacking import unpacked
from experiments.campaigns.sweep import OF_MANY_RUNS
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.declared import is_known, known_systems, programs_of
from experiments.files.scratch import scratch
from experiments.model import Experiment
from experiments.planned.plan import Plan, plan_to_json
from experiments.records.json_files import read_json
from experiments.records.run_record import RunRecord
from experiments.records.rundir import POINTS, RunDirectory
from node.core.program import Programs
from systems.names import is_path
from testbed.planning import make_plan
from testbed.sweeps import digest_of
from topologies.document import Document, validated
from topologies.errors import InputError
from topologies.model import Topology
from topologies.strict import suggestion

TRUST = "--trust-programs"


@dataclass(frozen=True, slots=True)
class ArchivedRun:
    """What a run was, and what it claims.

    name: as the user gave it. deliveries: of a run in virtual time, digests of what processes wrote down,
    by file.
    """

    name: str
    record: RunRecord
    claims: tuple[Claim, ...]
    deliveries: Mapping[str, str]

    @property
    def experiment(self) -> dict[str, Any]:
        """The experiment of this one run."""
        return {key: value for key, value in self.record.experiment.items() if key not in OF_MANY_RUNS}

    def plan(self) -> Plan:
        """The plan as it was before a backend adapted it, and before anybody watched the run."""
        plan = self.record.plan
        captures = tuple(replace(each, in_parts=False) for each in plan.captures if not each.wire)
        return replace(plan, captures=captures)

    def with_seed(self, seed: int) -> "ArchivedRun":
        """The same experiment with another seed. Raises InputError if it cannot be planned as it was."""
        then = self._planned(self.record.plan.seed)
        if plan_to_json(then) != plan_to_json(self.plan()):
            said = f"{self.name} was planned otherwise than it is planned now: take its own seed"
            raise InputError("--seed", None, "", said)
        return replace(self, record=replace(self.record, plan=self._planned(seed), seed=seed))

    def _planned(self, seed: int) -> Plan:
        experiment = validated(Experiment, Document(self.name, self.experiment, {}))
        topology = validated(Topology, Document(self.name, self.record.topology, {}))
        return make_plan(experiment, topology, seed=seed, links_kind=self.record.plan.links_kind)

    def described(self) -> dict[str, Any]:
        """Its inputs as plain JSON, for run.json."""
        return {"experiment": self.experiment, "topology": self.record.topology}

    def digest(self, backend: str, repeat: int, seed: int | None) -> str:
        """Of everything that decides what is run. seed: of the first repeat, if not the archive's in each."""
        content = {"plan": plan_to_json(self.plan()), "on": backend, "repeat": repeat, "seed": seed}
        return digest_of(content)


def read_archive(archive: Path, name: str, point: str | None, *, trust: bool) -> ArchivedRun:
    """The run in an archive, which is unpacked for this alone. See `read_run` for the others."""
    with scratch(".reproducing-", Path.cwd()) as folder:
        path, _ = unpacked(archive, folder)
        sweep = SweepDirectory(path)
        found = SweepDirectory.open(path) if sweep.sweep_json.is_file() else RunDirectory.open(path)
        return read_run(found, name, point, trust=trust, packed=True)


def read_run(
    found: RunDirectory | SweepDirectory, name: str, point: str | None, *, trust: bool, packed: bool = False
) -> ArchivedRun:
    """A run as what it takes to make it again.

    name: as the user gave it. point: which run of a sweep. trust: whether programs of its own are run.
    packed: whether it must have the claims of its archive; one that is here claims what its summary says.
    Raises InputError if it claims nothing, or cannot be made again.
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
        said = "was made at the prompt of `cutset shell`: what was done by hand cannot be made again"
        raise InputError(name, None, "", said)
    delivered = {
        each.name: digest_of_file(each)
        for each in sorted(run.deliveries.glob("*") if record.simulated else ())
        if each.is_file() and not each.is_symlink()
    }
    plan = _with_programs(record.plan, record.experiment.get("system"), name, trust=trust)
    return ArchivedRun(name, replace(record, plan=plan), tuple(claimed), delivered)


def _run_of(found: RunDirectory | SweepDirectory, name: str, point: str | None) -> RunDirectory:
    if isinstance(found, RunDirectory):
        if point is not None:
            raise InputError("--point", None, "", f"{name} is a single run, and no sweep that has points")
        return found
    made = {run.name: run for run in found.read().made}
    if point is None:
        names = ", ".join(list(made)[:5]) + (f" and {len(made) - 5} more" if len(made) > 5 else "")
        raise InputError(name, None, "", f"is a sweep: name one of its runs with --point: {names}")
    if point not in made:
        raise InputError("--point", None, "", f"{name} has no run {point}{suggestion(point, list(made))}")
    return RunDirectory.open(found.path / POINTS / made[point].name)


def _with_programs(plan: Plan, system: object, name: str, *, trust: bool) -> Plan:
    """The plan for this machine: the folder of a system of programs lies elsewhere here.

    system: what the experiment's file called it, a name or the path of a file. Raises InputError if the
    system is not known here, or would start what nobody here knows.
    """
    if plan.programs is None:
        if not is_known(plan.system):
            known = suggestion(plan.system, known_systems())
            said = f"there is no system {plan.system} here{known} (`cutset --system-module FILE` adds one)"
            raise InputError(name, None, "", said)
        return plan
    here = _programs_here(plan.system, system)
    if here is not None and _as_elsewhere(here) == _as_elsewhere(plan.programs):
        return replace(plan, programs=here)
    if not trust:
        said = (
            f"would start other programs than {plan.system} has here: {TRUST} runs what it says, "
            "if you trust whoever packed it"
        )
        raise InputError(name, None, "", said)
    folder = plan.programs.folder if here is None else here.folder
    if not Path(folder).is_dir():
        raise InputError(name, None, "", f"needs the files of its system {plan.system}, which are not here")
    return replace(plan, programs=replace(plan.programs, folder=folder))


def _programs_here(name: str, system: object) -> Programs | None:
    """The programs of the system of this name, or of the user's file if it is still there."""
    if name in known_systems():
        return programs_of(name)
    is_here = isinstance(system, str) and is_path(system) and Path(system).exists()
    return programs_of(str(system)) if is_here else None


def _as_elsewhere(programs: Programs) -> Programs:
    """Without where it lies."""
    return replace(programs, folder="", file=Path(programs.file).name)


def digest_of_file(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
