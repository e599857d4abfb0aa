"""`cutset run` of a sweep in virtual time: its directory, output, exit codes, and resumption."""

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.campaigns.campaign import RunState
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.files.locks import folder_lock
from experiments.loader import read_experiment
from testbed.cli import main
from testbed.run_selection import RunSelection
from testbed.sweeps import Points
from tests.experiments.campaigns.test_campaign import WRITTEN
from tests.testbed.runner.live import CUT_FOR_GOOD, write_experiment

SWEEP = "sweep: {workload.rate: [100/s, 200/s]}\n"
EXPECTED = "expect: [events.lost == 0, events.duplicated == 0]\n"


@pytest.fixture
def experiment(tmp_path):
    return write_experiment(tmp_path, faults=SWEEP + EXPECTED + "on: simulator\ncaptures: none\n")


def the_sweep(tmp_path: Path) -> SweepDirectory:
    [path] = (tmp_path / "runs").iterdir()
    return SweepDirectory.open(path)


def run(tmp_path: Path, experiment: Path, *options: str) -> int:
    return main.run(["run", str(experiment), "--out", str(tmp_path / "runs"), *options])


def begun(tmp_path: Path, change: Callable[[Any], object] = lambda _: None) -> SweepDirectory:
    """Return a sweep in the state that an interrupted command leaves, with a changed record."""
    directory = SweepDirectory(tmp_path / "runs/20261123T054447Z-tiny-240e1e")
    directory.points.mkdir(parents=True)
    content = json.loads((WRITTEN / "sweep.json").read_text())
    change(content)
    directory.sweep_json.write_text(json.dumps(content))
    return directory


@pytest.mark.slow
def test_a_sweep_runs_all_its_points_and_resumes(tmp_path, experiment, capsys):
    assert run(tmp_path, experiment, "--repeat", "2") == 0
    said = capsys.readouterr()
    directory = the_sweep(tmp_path)
    record = directory.read()
    assert record.outcome == "completed"
    assert [(point.seed, point.verdict) for point in record.runs] == [(1, "passed")] * 2 + [(2, "passed")] * 2
    lines = said.err.splitlines()
    assert lines[:2] == [f"sweep {directory.path}", "4 of 4 runs to go"]
    assert len(lines) == 6
    assert re.fullmatch(r"\[4/4\] workload\.rate=[12]00/s seed [12]: passed, [\d,]+ events/s, .*", lines[-1])
    assert said.out == (
        "verdict      passed\n"
        "runs         4 passed; 4 in all\n"
        f"report       {directory.report_html}\n"
        f"sweep        {directory.sweep_json}\n"
    )

    torn = record.runs[1]
    deliveries = {file.name: file.read_bytes() for file in directory.run_of(torn).deliveries.iterdir()}
    content = json.loads(directory.sweep_json.read_text())
    content["runs"][1] |= {"state": "pending", "verdict": None}
    directory.sweep_json.write_text(json.dumps(content))
    shutil.rmtree(directory.run_of(torn).analysis)
    kept = directory.run_of(record.runs[0]).summary_json.stat().st_mtime_ns

    assert run(tmp_path, experiment, "--repeat", "2", "--resume", str(directory.path)) == 0
    assert capsys.readouterr().err.splitlines()[1] == "1 of 4 runs to go"
    assert directory.run_of(record.runs[0]).summary_json.stat().st_mtime_ns == kept
    again = {file.name: file.read_bytes() for file in directory.run_of(torn).deliveries.iterdir()}
    assert again == deliveries  # the same seed, the same run

    changed = ("--repeat", "2", "--set", "duration=1s", "--resume", str(directory.path))
    assert run(tmp_path, experiment, *changed) == 2
    assert capsys.readouterr().err == (
        f"cutset: --resume {directory.path}: cannot continue: tiny or its topology has changed\n"
    )


@pytest.mark.slow
def test_chosen_variants_are_resumed_with_the_same_choice_only(tmp_path, capsys):
    several = "variants: {slow: {}, fast: {workload.rate: 200/s}, other: {}}\n"
    experiment = write_experiment(tmp_path, faults=several + "on: simulator\ncaptures: none\n")
    chosen = ("--variant", "slow", "--variant", "fast", "--no-analyze")
    assert run(tmp_path, experiment, *chosen) == 0
    directory = the_sweep(tmp_path)
    record = directory.read()
    directory.write(record.with_run(replace(record.named("2-variant-fast-r0"), state=RunState.FAILED)))
    capsys.readouterr()
    assert run(tmp_path, experiment, *chosen, "--resume", str(directory.path)) == 0
    assert capsys.readouterr().err.splitlines()[1] == "1 of 2 runs to go"
    assert directory.read().complete
    assert run(tmp_path, experiment, "--no-analyze", "--resume", str(directory.path)) == 2


@pytest.mark.slow
def test_an_interrupted_sweep_resumes(tmp_path, experiment, capsys):
    file = read_experiment(str(experiment))
    chosen = RunSelection.from_options(file, backend=None, links="auto", seed=None, repeat=2)
    directory = begun(tmp_path, lambda content: content.update(digest=Points(chosen).digest()))
    resume = ("--repeat", "2", "--no-analyze", "--resume", str(directory.path))
    assert run(tmp_path, experiment, *resume) == 0
    assert capsys.readouterr().err.splitlines()[-3].startswith("2 of 4 runs to go")
    runs = directory.read().runs
    assert [each.verdict for each in runs] == ["failed", "failed", None, None]
    assert all(each.state is RunState.DONE and each.problem is None for each in runs[2:])
    assert {path.name for path in directory.points.iterdir()} == {each.name for each in runs[2:]}


def test_a_sweep_in_use_by_another_command_is_refused(tmp_path, experiment, capsys):
    directory = begun(tmp_path)
    before = directory.sweep_json.read_bytes()
    said = f"cutset: {directory.path}: another command is using it (process {os.getpid()}, "
    with folder_lock(directory.path, wait=False):
        assert run(tmp_path, experiment, "--repeat", "2", "--resume", str(directory.path)) == 3
        assert capsys.readouterr().err.startswith(said)
        assert main.run(["analyze", str(directory.path)]) == 3
        assert capsys.readouterr().err.startswith(said)
    assert directory.sweep_json.read_bytes() == before


def test_a_damaged_record_is_bad_input(tmp_path, experiment, capsys):
    directory = begun(tmp_path, lambda content: content["runs"][1].update(seed="seven"))
    assert run(tmp_path, experiment, "--repeat", "2", "--resume", str(directory.path)) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"cutset: {directory.sweep_json}: runs.1.seed: ")


@pytest.mark.slow
def test_a_run_that_fails_is_named_with_the_command_that_replays_it(tmp_path, experiment, capsys):
    impossible = ("--set", "expect=[events.lost == 1]", "--set", "sweep=null")
    assert run(tmp_path, experiment, *impossible, "--repeat", "2", "--seed", "5") == 1
    out = capsys.readouterr().out
    assert "verdict      failed\n" in out
    assert "failed       seed 5: events.lost == 1 did not hold (0)\n" in out
    given = f"{experiment} --set 'expect=[events.lost == 1]' --set sweep=null"
    assert f"             replay: cutset run {given} --seed 6 --repeat 1 --on simulator\n" in out


def test_dry_shows_the_runs_and_starts_nothing(tmp_path, experiment, capsys):
    assert run(tmp_path, experiment, "--dry", "--seed", "3") == 0
    out = capsys.readouterr().out
    assert "  1-rate-100-s-r0  seed 3  workload.rate=100/s\n" in out
    assert not (tmp_path / "runs").exists()


def test_an_unknown_backend_is_bad_input(tmp_path, experiment, capsys):
    assert run(tmp_path, experiment, "--on", "mars") == 2
    assert (
        capsys.readouterr().err
        == "cutset: --on: there is no backend mars; known: local, simulator, or an inventory (YAML)\n"
    )


@pytest.mark.slow
def test_a_sweep_in_which_no_stream_ever_flows_again_has_its_page(tmp_path):
    experiment = write_experiment(tmp_path, faults=CUT_FOR_GOOD + SWEEP + "on: simulator\ncaptures: none\n")
    assert run(tmp_path, experiment) == 1
    directory = the_sweep(tmp_path)
    lost = [directory.run_of(point).read_summary()["events"]["lost"] for point in directory.read().runs]
    assert all(lost)
    assert "Not all passed" in directory.report_html.read_text()


VARIANTS = """\
variants:
  slow: {}
  fast: {workload.rate: 200/s}
  foreign: {system: foreign.yaml, roles: {publisher: 1}, workload: {event_size: 40B, rate: 1/s}}
"""
FOREIGN = """\
name: foreign
description: A system whose program is nowhere.
needs: [{program: no-such-broker, get: apt-get install no-such-broker}]
contract: {published: sent, since: subscription, order: stream, delivery: at-most-once}
roles: {publisher: {traits: [publisher], run: [no-such-broker]}}
"""


@pytest.mark.slow
def test_variants_are_side_by_side_and_uninstalled_ones_are_skipped(tmp_path, capsys):
    (tmp_path / "foreign.yaml").write_text(FOREIGN)
    faults = "faults: [{name: cut, at: 500ms, cut: [r0, r1], for: 300ms}]\n"
    experiment = write_experiment(tmp_path, faults=faults + VARIANTS + "on: simulator\ncaptures: none\n")
    assert run(tmp_path, experiment, "--repeat", "2") == 0
    said = capsys.readouterr()
    lacks = "needs software that is not installed: `no-such-broker` (apt-get install no-such-broker)"
    missing = f"{tmp_path}/foreign.yaml {lacks}"
    directory = the_sweep(tmp_path)
    assert said.err.splitlines()[1:3] == [f"left out foreign: {missing}", "4 of 6 runs to go"]
    assert "runs         4 passed, 2 left out; 6 in all\n" in said.out
    assert f"systems      {directory.systems_html}\n" in said.out
    page = directory.systems_html.read_text()
    assert page.count('class="system-row"') == 2
    assert "foreign was left out" in page
    assert directory.systems_html.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert main.run(["compare", "--systems", "--text", str(directory.path)]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split()[:2] == ["system", "noticed"]
    assert [line.split()[0] for line in table[1:3]] == ["slow", "fast"]
    assert [line.split()[-3:] for line in table[1:3]] == [["2", "of", "2"]] * 2
    assert main.run(["compare", "--systems", str(directory.points / "x")]) == 2


def test_a_sweep_of_values_has_no_systems_to_compare(tmp_path, capsys):
    assert main.run(["compare", "--systems", str(begun(tmp_path).path)]) == 2
    assert "has no variants" in capsys.readouterr().err
