"""Reads the run.json of each machine, which is untrusted.

An invalid one counts as missing, and the run records that: whatever a machine writes, the others' parts are
merged.
"""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, StrictInt, ValidationError

from experiments.plain_name import plain_name
from experiments.rundir import RunDirectory, read_json
from testbed.machines.shipping.names import MACHINES
from testbed.runner.phases import Outcome, Phase
from testbed.sanitize import sanitize
from topologies.errors import InputError

NOT_USED = "its run.json is not used"

Content = dict[str, Any]


class _Change(BaseModel):
    requested_ns: StrictInt


class _Capture(BaseModel):
    file: str


class _Part(BaseModel):
    """The fields of a part's run.json that readers rely on."""

    model_config = ConfigDict(allow_inf_nan=False)

    changes: list[_Change]
    captures: list[_Capture]
    processes: list[Content]
    probes: list[Content]
    counters: list[Content]
    cpu: list[Content]
    problems: list[str]
    times: dict[str, StrictInt]
    links: str
    links_without_emulator: list[str] = []
    tcp: Content
    phase: Phase
    outcome: Outcome | None


def read_parts(run: RunDirectory, machines: Sequence[str]) -> tuple[dict[str, Content], list[str]]:
    """The valid parts, by machine, and a line for each invalid one.

    A part that has not arrived at all is reported by `ShippingResult`.
    """
    parts: dict[str, Content] = {}
    problems = []
    for name in machines:
        path = run.path / MACHINES / plain_name(name, run.run_json) / run.run_json.name
        if not path.exists():
            continue
        try:
            part = read_json(path)
            _Part.model_validate(part)
            json.dumps(part, indent=1, allow_nan=False)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(step) for step in first["loc"])
            problems.append(_problem(name, f"{where}: {first['msg']}"))
        except InputError as error:
            problems.append(_problem(name, error.problem))
        except (ValueError, RecursionError) as error:
            problems.append(_problem(name, str(error)))
        else:
            parts[name] = part
    return parts, problems


def about_parts(line: str) -> bool:
    """Whether a problem of a run is one that `read_parts` reported."""
    return f": {NOT_USED}: " in line


def _problem(machine: str, why: str) -> str:
    return f"{machine}: {NOT_USED}: {sanitize(why)}"
