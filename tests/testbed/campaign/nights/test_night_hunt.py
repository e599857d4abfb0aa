"""An entry of a suite that hunts: it continues from night to night, and its findings fail the night."""

import pytest

from experiments.campaigns.campaign import FailureKind, RunState
from experiments.campaigns.nights import NightRun
from experiments.hunting.huntdir import HUNTS, HuntDirectory
from experiments.records.json_files import read_json, write_json
from testbed.campaign.nights import night_one
from testbed.campaign.nights.night_hunt import concluded
from testbed.campaign.run_results import NAMED_MAX
from tests.testbed.campaign.night_fixtures import Nights

RUN = NightRun(name="hunted r0", entry="hunted", experiment="tiny", backend="simulator", seed=1)


@pytest.fixture
def directory(tmp_path):
    made = HuntDirectory(tmp_path / "hunt")
    made.make()
    return made


def found(directory: HuntDirectory, number: int) -> None:
    folder = directory.findings / f"{number:02d}-lost"
    folder.mkdir()
    write_json(folder / "finding.json", {"said": f"{number} events were lost", "signature": str(number)})


def test_a_hunt_without_findings_has_passed(directory):
    made = concluded(RUN, directory, 12.3456)
    assert (made.state, made.verdict, made.failure, made.problem) == (RunState.DONE, "passed", None, None)
    assert made.duration_s == 12.346


def test_a_hunts_finding_fails_the_run_and_gives_the_replay_command(directory):
    for number in range(1, NAMED_MAX + 3):
        found(directory, number)
    made = concluded(RUN, directory, 1.0)
    assert (made.verdict, made.failure) == ("failed", FailureKind.EXPECTATION)
    assert made.problem is not None
    said = made.problem.split("; ")
    assert said[:NAMED_MAX] == [f"{number} events were lost" for number in range(1, NAMED_MAX + 1)]
    assert said[NAMED_MAX] == "and 2 more"
    assert said[-1].startswith(f"cutset hunt --replay {directory.findings}/")


@pytest.mark.slow
def test_a_night_hunts_and_the_next_one_continues(tmp_path, monkeypatch):
    hunt_for = night_one.hunt_for
    monkeypatch.setattr(
        night_one, "hunt_for", lambda night, run, _, began_s: hunt_for(night, run, 0.1, began_s)
    )
    nights = Nights(tmp_path)
    nights.suite("name: hunted, hunt: 10s, set: {duration: 16s}")
    assert nights.run() == 0
    [run] = nights.record.runs
    assert (run.verdict, run.run) == ("passed", None)
    [folder] = (tmp_path / "runs" / HUNTS).iterdir()
    first = read_json(folder / "progress.json")
    assert first["runs"] > 0
    assert ("hunted r0", ["properties"]) in nights.cases()
    assert nights.run("--date", "2026-11-22") == 0
    assert read_json(folder / "progress.json")["runs"] > first["runs"]
