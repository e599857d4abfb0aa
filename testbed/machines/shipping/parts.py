"""Reads the run.json of each machine, which is untrusted.

An invalid one counts as missing, and the run records that: whatever a machine writes, the others' parts are
merged.
"""

from collections.abc import Sequence

from experiments.files.plain_name import plain_name
from experiments.files.sanitize import sanitize
from experiments.planned.plan import Plan
from experiments.records.run_record import RunRecord, read_record
from experiments.records.rundir import RunDirectory
from testbed.machines.shipping.names import MACHINES
from topologies.errors import InputError

NOT_USED = "its run.json is not used"


def read_parts(
    run: RunDirectory, plan: Plan, machines: Sequence[str]
) -> tuple[dict[str, RunRecord], list[str]]:
    """The parts that are here and can be used, by machine, and a line for each that cannot.

    plan: the run's, which each must have carried out. One that is not here at all was not shipped, which
    `Shipped` says.
    """
    parts: dict[str, RunRecord] = {}
    problems = []
    for name in machines:
        path = run.path / MACHINES / plain_name(name, run.run_json) / run.run_json.name
        if not path.exists():
            continue
        try:
            part = read_record(path)
        except InputError as error:
            problems.append(
                _problem(name, f"{error.field}: {error.problem}" if error.field else error.problem)
            )
            continue
        if part.plan == plan:
            parts[name] = part
        else:
            problems.append(_problem(name, "plan: is not the run's"))
    return parts, problems


def about_parts(line: str) -> bool:
    """Whether a problem of a run is one that `read_parts` reported."""
    return f": {NOT_USED}: " in line


def _problem(machine: str, why: str) -> str:
    return f"{machine}: {NOT_USED}: {sanitize(why)}"
