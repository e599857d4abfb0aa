"""`cutset shell` up to its prompt: the fields of an experiment that apply, and messages about others."""

import json
from typing import Any

import pytest

from testbed.campaign import shell_run
from testbed.cli.main import run as cutset
from testbed.errors import TestbedError
from testbed.runner import run_control

DO_NOT_HAPPEN = "the faults of link-failure do not happen; enable them with --with-faults"
HAPPEN = "the faults of link-failure ({}) happen as planned"


@pytest.fixture(autouse=True)
def stopped_before_the_sandbox(monkeypatch):
    def at_the_prompt(*_: Any, **__: Any) -> None:
        raise TestbedError("at the prompt")

    monkeypatch.setattr(shell_run, "execute", at_the_prompt)
    monkeypatch.setattr(run_control, "check_machine", lambda *_: None)


@pytest.fixture
def prepared(tmp_path, capsys):
    """Return run.json of a shell that reached its sandbox, and its output until then."""

    def open_shell(*options: str, experiment: str = "link-failure") -> tuple[dict[str, Any], str]:
        code = cutset(["shell", experiment, "--out", str(tmp_path), *options])
        said = capsys.readouterr().err
        assert (code, said.splitlines()[-1]) == (1, "cutset: at the prompt")
        [path] = tmp_path.glob("*/run.json")
        return json.loads(path.read_text()), said

    return open_shell


def faults(content: dict[str, Any]) -> list[str]:
    return [fault["name"] for fault in content["plan"]["faults"]]


@pytest.mark.parametrize(
    "override",
    ["duration=15s", "faults=[]", "faults.cut.at=70s", "expect=[events.lost < 0]", "sweep={seed: [1, 2]}"],
)
def test_faults_and_expectations_do_not_prevent_overrides(prepared, override):
    content, said = prepared("--set", override)
    assert faults(content) == []
    assert content["plan"]["changes"] == []
    assert [content["experiment"].get(field) for field in ("faults", "expect", "sweep")] == [[], [], {}]
    assert (DO_NOT_HAPPEN in said) == (override != "faults=[]")


def test_an_experiment_of_virtual_time_has_a_prompt_on_this_machine(prepared):
    content, said = prepared("--set", "on=simulator", "--set", "duration=2s", experiment="nemesis")
    assert (faults(content), "nemesis" in content["experiment"]) == ([], False)
    assert "the faults of nemesis do not happen" in said


def test_the_experiments_faults_are_applied_on_request_without_expectations(prepared):
    content, said = prepared("--with-faults")
    assert faults(content) == ["cut", "restore"]
    assert content["experiment"]["expect"] == []
    assert HAPPEN.format(2) in said


def test_expectations_need_no_fault(prepared):
    content, said = prepared("--with-faults", "--set", "faults.cut=null")
    assert faults(content) == ["restore"]
    assert HAPPEN.format(1) in said


def test_random_faults_become_planned_ones_on_request(prepared):
    content, _ = prepared("--with-faults", experiment="nemesis")
    assert len(faults(content)) > 0
    assert "nemesis" not in content["experiment"]


def test_requested_faults_must_begin_within_the_duration(tmp_path, capsys):
    arguments = ["shell", "link-failure", "--out", str(tmp_path), "--with-faults", "--set", "duration=30s"]
    assert cutset(arguments) == 2
    assert (
        "link-failure.yaml:14: faults.1.at: 41 s is after the end of the run, 30 s" in capsys.readouterr().err
    )
    assert list(tmp_path.iterdir()) == []


def test_applicable_fields_are_validated(capsys):
    assert cutset(["shell", "link-failure", "--set", "workload.rate=5"]) == 2
    assert "workload.rate: 5 has no unit" in capsys.readouterr().err
