"""Changes run.json by hand, as tests need it."""

from typing import Any

from experiments.json_files import read_json, write_json
from experiments.plan import Plan
from experiments.run_record import RunRecord, record_to_json
from experiments.rundir import RunDirectory

SMALL = Plan("small", "sprinkler", {}, {}, 1, 1_000_000, 0, "auto", None, None, (), (), (), (), (), (), ())
"""A plan of nothing."""


def set_run(run: RunDirectory, **fields: Any) -> dict[str, Any]:
    """Set fields of run.json, as JSON; of a run that has none, those of a run that has not begun."""
    there = run.run_json.exists()
    content = (read_json(run.run_json) if there else record_to_json(RunRecord(SMALL))) | fields
    write_json(run.run_json, content)
    return content
