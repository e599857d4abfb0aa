"""The run.json files of the machines, which are untrusted.

An invalid one counts as missing, and the run records that; the parts of the other machines are merged.
"""

from collections.abc import Sequence
from dataclasses import replace

from experiments.files.plain_name import plain_name
from experiments.files.sanitize import sanitize
from experiments.planned.plan import Plan
from experiments.records.run_record import RunRecord, read_record, write_record
from experiments.records.rundir import RunDirectory
from testbed.machines.merging import merged
from testbed.machines.shipping.names import MACHINES
from topologies.errors import InputError

NOT_USED = "its run.json is not used"


def read_parts(
    run: RunDirectory, plan: Plan, machines: Sequence[str]
) -> tuple[dict[str, RunRecord], list[str]]:
    """Return the valid parts that are here, by machine, and a message for each invalid one.

    plan: the run's, which each must have executed. A part that is not here was not shipped, which the
    `Shipment` reports.
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


def write_merged(run: RunDirectory, base: RunRecord, order: Sequence[str]) -> RunRecord:
    """Merge the parts that are here into run.json; returns the record.

    base: with the machines, shipments and problems that the controller knows. order: see `merged`.
    """
    parts, unusable = read_parts(run, base.plan, order)
    problems = (line for line in base.problems if not about_parts(line))
    record = merged(replace(base, problems=(*problems, *unusable)), parts, order)
    write_record(run.run_json, record)
    return record


def about_parts(line: str) -> bool:
    """Return whether `read_parts` reported this problem of a run."""
    return f": {NOT_USED}: " in line


def _problem(machine: str, why: str) -> str:
    return f"{machine}: {NOT_USED}: {sanitize(why)}"
