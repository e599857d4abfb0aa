"""What machines say of their parts of a run is used only if it can be."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.rundir import RunDirectory
from testbed.machines.merging import LISTS, merged
from testbed.machines.shipping.parts import about_parts, read_parts

GOOD: dict[str, Any] = {
    **{key: [] for key in (*LISTS, "problems")},
    "times": {"zero_ns": 1},
    "links": "relay",
    "tcp": {},
    "phase": "collected",
    "outcome": "completed",
}
BASE: dict[str, Any] = {
    **{key: [] for key in (*LISTS, "problems")},
    "times": {},
    "machines": [{"name": name, "zero_ns": None} for name in ("h0", "h1")],
}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in GOOD.items() if name != key}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    for name in ("h0", "h1"):
        (tmp_path / "machines" / name).mkdir(parents=True)
    (tmp_path / "machines/h0/run.json").write_text(json.dumps(GOOD))
    return RunDirectory(tmp_path)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        *((json.dumps(without(key)), f"{key}: Field required") for key in GOOD),
        (json.dumps({**GOOD, "phase": "waxing"}), "phase: Input should be"),
        (json.dumps({**GOOD, "outcome": 7}), "outcome: Input should be"),
        (json.dumps({**GOOD, "changes": [{}]}), "changes.0.requested_ns: Field required"),
        (json.dumps({**GOOD, "changes": [{"requested_ns": "1"}]}), "changes.0.requested_ns: Input"),
        (json.dumps({**GOOD, "captures": [7]}), "captures.0: Input should be"),
        (json.dumps({**GOOD, "problems": "none"}), "problems: Input should be a valid list"),
        (json.dumps({**GOOD, "times": {"zero\n_ns": "noon"}}), "times.zero _ns: Input should be"),
        (json.dumps({**GOOD, "links_without_emulator": [[]]}), "links_without_emulator.0: Input should be"),
        (json.dumps({**GOOD, "cpu": [{"busy": float("nan")}]}), "Out of range float values"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "should hold a JSON object"),
        ('{"phase": "coll', "is not JSON"),
        ("", "is not JSON"),
    ],
)
def test_a_part_that_makes_no_sense_counts_as_missing_and_is_told_of(
    run: RunDirectory, said: str, why: str
) -> None:
    (run.path / "machines/h1/run.json").write_text(said)
    parts, problems = read_parts(run, ["h0", "h1"])
    assert parts == {"h0": GOOD}
    (line,) = problems
    assert line.startswith(f"h1: its run.json is not used: {why}")
    assert about_parts(line)
    content = merged({**BASE, "problems": problems}, parts, ["h0", "h1"])
    assert content["outcome"] == "crashed"
    run.update_run(**content)


def test_a_part_that_did_not_come_is_the_shipping_s_to_tell(run: RunDirectory) -> None:
    assert read_parts(run, ["h0", "h1"]) == ({"h0": GOOD}, [])


def test_parts_may_say_more_than_is_known_here(run: RunDirectory) -> None:
    more = {**GOOD, "links_without_emulator": ["a-b"], "captures": [{"file": "a", "new": 1}], "newer": [1]}
    (run.path / "machines/h1/run.json").write_text(json.dumps(more))
    assert read_parts(run, ["h1"]) == ({"h1": more}, [])
