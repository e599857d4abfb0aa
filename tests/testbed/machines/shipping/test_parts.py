"""Machines' records of their parts of a run are used only if they are valid."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.timelines.run_metadata import read_metadata
from experiments.records.observations import MachineShare
from experiments.records.run_record import (
    Outcome,
    RunPhase,
    RunRecord,
    Times,
    read_record,
    record_to_json,
    write_record,
)
from experiments.records.rundir import RunDirectory
from testbed.machines.merging import merged
from testbed.machines.shipping.parts import about_parts, read_parts
from tests.changed_json import WRONG, broken
from tests.run_json import SMALL, little_run

USABLE = RunRecord(
    SMALL, links="relay", phase=RunPhase.COLLECTED, outcome=Outcome.COMPLETED, times=Times(zero_ns=1)
)
GOOD: dict[str, Any] = record_to_json(USABLE)
BASE = RunRecord(SMALL, machines=(MachineShare("h0", ()), MachineShare("h1", ())))


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    for name in ("h0", "h1"):
        (tmp_path / "machines" / name).mkdir(parents=True)
    (tmp_path / "machines/h0/run.json").write_text(json.dumps(GOOD))
    return RunDirectory(tmp_path)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (json.dumps({key: value for key, value in GOOD.items() if key != "plan"}), "plan: is missing"),
        (json.dumps({**GOOD, "phase": "waxing"}), "phase: should be"),
        (json.dumps({**GOOD, "outcome": 7}), "outcome: should be"),
        (json.dumps({**GOOD, "changes": [{}]}), "changes.0.index: is missing"),
        (
            json.dumps({**GOOD, "changes": [{"index": 0, "requested_ns": 1, "applied_ns": 1}]}),
            "changes.0.index",
        ),
        (json.dumps({**GOOD, "captures": [7]}), "captures.0: should be"),
        (json.dumps({**GOOD, "captures": [{"file": "../passwd"}]}), "captures.0.file: "),
        (json.dumps({**GOOD, "problems": "none"}), "problems: should be a list"),
        (json.dumps({**GOOD, "times": {"zero\n_ns": "noon"}}), "times.zero _ns: unknown field"),
        (json.dumps({**GOOD, "links_without_emulator": [[]]}), "links_without_emulator.0: should be"),
        (
            json.dumps({**GOOD, "cpu": [{"t_ns": 1, "busy": float("nan")}]}),
            "is not JSON: NaN is not a number",
        ),
        (json.dumps({**GOOD, "newer": [1]}), "newer: unknown field"),
        (json.dumps({**GOOD, "plan": {**GOOD["plan"], "seed": 2}}), "plan: is not the run's"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "should hold a JSON object"),
        ('{"phase": "coll', "is not JSON"),
        ("", "is not JSON"),
    ],
)
def test_an_invalid_part_counts_as_missing_and_is_reported(run: RunDirectory, said: str, why: str) -> None:
    (run.path / "machines/h1/run.json").write_text(said)
    parts, problems = read_parts(run, SMALL, ["h0", "h1"])
    assert parts == {"h0": USABLE}
    (line,) = problems
    assert line.startswith(f"h1: its run.json is not used: {why}")
    assert about_parts(line)
    record = merged(replace(BASE, problems=tuple(problems)), parts, ["h0", "h1"])
    assert record.outcome is Outcome.CRASHED
    write_record(run.run_json, record)


def test_a_run_is_readable_whatever_part_a_machine_sends(run: RunDirectory) -> None:
    content, plan = record_to_json(little_run()), little_run().plan
    base = RunRecord(plan, machines=BASE.machines)

    def merge(content: dict[str, Any]) -> None:
        (run.path / "machines/h1/run.json").write_text(json.dumps(content))
        parts, problems = read_parts(run, plan, ["h0", "h1"])
        assert all("\n" not in line for line in problems)
        write_record(run.run_json, merged(replace(base, problems=tuple(problems)), parts, ["h0", "h1"]))
        read_metadata(read_record(run.run_json))

    assert broken(content, WRONG, merge, allowed=(), skip=("plan",), every=20) == []


def test_a_part_that_did_not_arrive_is_reported_by_shipping(run: RunDirectory) -> None:
    assert read_parts(run, SMALL, ["h0", "h1"]) == ({"h0": USABLE}, [])
