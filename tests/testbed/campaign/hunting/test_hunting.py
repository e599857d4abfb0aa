"""A hunt finds a planted defect, shrinks it, writes a finding that can be replayed, and resumes."""

import contextlib
import errno
import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from experiments.child_python import python_command
from experiments.hunting.case import HuntCase, case_from_json
from experiments.hunting.case_experiment import hunt_base
from experiments.hunting.huntdir import BrokenCase, HuntDirectory
from experiments.loader import read_experiment
from testbed.campaign import exit_codes
from testbed.campaign.hunting import start
from testbed.campaign.hunting.finding import HuntFinding, write_finding
from testbed.campaign.hunting.hunt import Hunt, HuntLimits
from testbed.campaign.jobs.pool import JobResult
from testbed.cli import main

SMALL = ["--set", "nemesis.vary=null", "--set", "duration=14s", "--set", "workload.rate=10/s"]
LITTLE = [
    *SMALL,
    "--set",
    "roles={proxy: 1, driver: 1, client: 2, configuration: 1}",
    "--topology",
    "two-regions",
]
READINGS = "tests.node.protocols.sprinkler.readings"


def hunt(folder: Path, *options: str) -> int:
    return main.run(["hunt", "nemesis", "-o", str(folder), *options])


@pytest.mark.slow
def test_a_planted_defect_is_found_shrunk_and_replayed(tmp_path, capfd):
    build = f"{READINGS}:never_asking_the_proxy"
    asked = [*LITTLE, "--seed", "19", "--runs", "60", "--findings", "1"]
    assert hunt(tmp_path / "hunt", *asked, "--build", build) == exit_codes.FAILED
    (folder,) = (tmp_path / "hunt/findings").iterdir()
    finding = json.loads((folder / "finding.json").read_text())
    assert finding["violation"]["kind"] == "lost"
    assert finding["verdict"] == "failed"
    assert finding["faults"] <= 3
    assert "never got" in finding["said"]
    assert finding["said"] in capfd.readouterr().out
    assert finding["said"] in (folder / "finding.txt").read_text()
    assert "o-" in (folder / "diagram.txt").read_text()
    experiment = read_experiment(str(folder / "experiment.yaml")).experiment
    assert experiment.seed == case_from_json(finding["case"]).seed
    assert (
        main.run(["run", str(folder / "experiment.yaml"), "--on", "simulator", "--out", str(tmp_path)]) == 0
    )


@pytest.mark.slow
def test_a_hunt_stops_at_its_limit_finds_nothing_in_correct_code_and_resumes(tmp_path, capfd):
    assert hunt(tmp_path, *LITTLE, "--for", "0.001s", "--workers", "1") == exit_codes.FINE
    directory = HuntDirectory(tmp_path)
    assert directory.progress().runs == 1, "a sitting whose time is over at once has a run all the same"
    assert json.loads(directory.hunt_json.read_text())["place"] == "simulator"
    assert "0 findings" in capfd.readouterr().out
    assert hunt(tmp_path, *LITTLE, "--runs", "3", "--workers", "2") == exit_codes.FINE
    assert directory.progress().runs == 3


@pytest.mark.parametrize(("findings", "left"), [(1, [8]), (2, [])])
def test_further_breaches_wait_for_the_next_session(tmp_path, findings, left):
    def look_into(broken):
        hunting.new_findings.append(broken)

    directory = HuntDirectory(tmp_path)
    directory.make()
    limits = HuntLimits(runs=0, findings=findings)
    options = {"seed": 1, "is_certain": True, "command": "cutset", "say": print}
    hunting = Hunt(None, None, None, directory, Answering(None), limits=limits, **options)
    hunting._look_into = look_into
    hunting.progress.waiting = [BrokenCase(number, HuntCase(number, {}, ()), ()) for number in (7, 8)]
    hunting.execute()
    assert [each.number for each in directory.progress().waiting] == left
    assert (f"{len(left)} to be shrunk" in hunting.text()) is bool(left)


class Answering:
    """A process that gives the same answer to each case."""

    size, idle, busy = 1, 1, 0

    def __init__(self, answer):
        self._answer, self._given = answer, []

    def give(self, job):
        self._given.append(job)

    def wait(self, _seconds):
        return [JobResult(self._given.pop().subject, self._answer)] if self._given else []


LACKING = [{"client": "r0/client-0", "role": "client", "stream": "r0", "count": 1}]
BROKEN = {"violations": [{"kind": "lost", "count": 1, "said": "lost", "examples": LACKING}]}


def given_a_pool(monkeypatch, answer=BROKEN):
    monkeypatch.setattr(start, "_pool", lambda *_: contextlib.nullcontext(Answering(answer)))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"refused": "no such topic"}, "none of the 2 runs was usable: 2 refused"),
        (None, "none of the 2 runs was usable: 2 did not finish"),
    ],
)
def test_a_hunt_without_a_usable_run_has_not_passed(tmp_path, monkeypatch, capsys, answer, said):
    given_a_pool(monkeypatch, answer)
    assert hunt(tmp_path, *LITTLE, "--runs", "2") == exit_codes.MACHINE
    assert said in capsys.readouterr().err
    assert hunt(tmp_path, *LITTLE, "--runs", "2") == exit_codes.MACHINE, "though there is nothing to do"


def test_a_full_disk_ends_the_hunt_in_one_line(tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    given_a_pool(monkeypatch)
    monkeypatch.setattr("testbed.campaign.hunting.hunt.write_json", full)
    assert hunt(tmp_path, *LITTLE, "--runs", "1") == exit_codes.MACHINE
    assert "No space left on device" in capsys.readouterr().err


def test_breaches_are_recorded_before_they_are_shrunk(tmp_path, monkeypatch):
    seen = []

    def look_into(_hunting, broken):
        seen.append((HuntDirectory(tmp_path).progress().waiting, broken))
        raise KeyboardInterrupt

    given_a_pool(monkeypatch)
    monkeypatch.setattr(Hunt, "_look_into", look_into)
    assert hunt(tmp_path, *LITTLE, "--runs", "3") == exit_codes.INTERRUPTED
    ((waiting, broken),) = seen
    assert waiting == [broken]


def test_ignored_expectations_are_reported_and_a_folder_without_its_description_is_refused(
    tmp_path, monkeypatch, capsys
):
    given_a_pool(monkeypatch)
    monkeypatch.setattr(Hunt, "_look_into", lambda *_: None)
    asked = [*LITTLE, "--set", "expect=[latency.p99_ms < 1, events.lost == 0]", "--runs", "1"]
    hunt(tmp_path, *asked)
    assert "not checked: latency.p99_ms < 1\n" in capsys.readouterr().err
    (tmp_path / "hunt.json").unlink()
    assert hunt(tmp_path, *asked) == exit_codes.BAD_INPUT
    assert "hunt.json: is missing" in capsys.readouterr().err


def a_finding(kind, verdict):
    violation = {"kind": kind, "count": 1, "said": kind, "examples": []}
    case = HuntCase(1, {"duration": "14s"}, ())
    return HuntFinding(case, case, violation, kind, "", verdict, run=1, after_s=1.0, shrinking_runs=1)


def test_the_number_of_a_finding_that_could_not_be_written_is_given_again(tmp_path):
    directory = HuntDirectory(tmp_path)
    directory.make()
    half, mine = directory.findings / "01-lost-after-nothing", directory.findings / "notes"
    for each in (half, mine):
        each.mkdir()
        (each / "experiment.yaml").write_text("name: half")
    base = hunt_base(read_experiment("nemesis", []).experiment)
    assert write_finding(directory, base, a_finding("lost", "failed"), "cutset") == half
    assert (half / "finding.json").exists()
    assert "name: finding-01" in (half / "experiment.yaml").read_text()
    assert (mine / "experiment.yaml").read_text() == "name: half"
    assert "each of these runs passes" not in (half / "finding.txt").read_text()
    command = "cutset --system-module my.py"
    folder = write_finding(directory, base, a_finding("stalled", "passed"), command)
    assert folder.name.startswith("02-")
    text = (folder / "finding.txt").read_text()
    assert f"{command} run {folder}/experiment.yaml --on simulator\n" in text
    assert "each of these runs passes" in text, "no figure of a run alone tells"


@pytest.mark.slow
def test_without_possible_faults_settings_and_sizes_are_varied(tmp_path):
    assert (
        hunt(tmp_path, *LITTLE, "--set", "contract={survives: []}", "--runs", "2", "--workers", "1")
        == exit_codes.FINE
    )
    progress = HuntDirectory(tmp_path).progress()
    assert (progress.runs, progress.refused, progress.unfinished) == (2, 0, 0)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hunt.json", "is of another hunt"),
        ("mine.yaml", "is not the folder of a hunt: it contains mine.yaml"),
    ],
)
def test_a_folder_with_other_files_is_left_unchanged(tmp_path, capsys, name, said):
    (tmp_path / name).write_text('{"seed": 7}')
    assert hunt(tmp_path, *LITTLE, "--runs", "1") == exit_codes.BAD_INPUT
    assert said in capsys.readouterr().err
    assert (tmp_path / name).read_text() == '{"seed": 7}'


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["link-failure-systems", "--set", "variant=mosquitto", "--on", "simulator"], "a system of programs"),
        (["nemesis", "--on", "inventory.yaml"], "hunts are on simulator or local"),
        (["nemesis", "--set", "nemesis.kinds=[throttle]"], "throttle is of real processes: leave it out, or"),
        (["nemesys"], "no experiment of this name"),
        (["nemesis", "--times", "3"], "is for --replay"),
        (["nemesis", "--for", "0s"], "--for"),
        (["nemesis", "--set", "roles.driver=0"], "no process publishes"),
        (["nemesis", "--set", "roles.client=0"], "no process receives events"),
        (["--replay", "tests", "--for", "3s"], "--replay takes no --for"),
        (["nemesis", "--replay", "tests"], "--replay takes no EXPERIMENT"),
    ],
)
def test_experiments_that_cannot_be_hunted_are_refused_in_one_line(tmp_path, capsys, asked, said):
    assert main.run(["hunt", *asked, "-o", str(tmp_path / "hunt")]) == exit_codes.BAD_INPUT
    assert said in capsys.readouterr().err
    assert not (tmp_path / "hunt").exists()


@pytest.mark.slow
def test_processes_that_end_at_once_end_the_hunt_in_one_line(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(start, "DEATHS_MAX", 1)
    assert hunt(tmp_path, *LITTLE, "--build", "no.such:build", "--workers", "1") == exit_codes.FAILED
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("cutset: ")]
    assert len(lines) == 1
    assert "ended without an answer" in lines[0]


@pytest.mark.slow
def test_ctrl_c_ends_the_hunt_and_its_processes_and_keeps_results(tmp_path):
    command = python_command("testbed.cli.main", "hunt", "nemesis", "-o", str(tmp_path), *LITTLE)
    root = str(Path(main.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        directory = HuntDirectory(tmp_path)
        ends_s = time.monotonic() + 120
        while not directory.progress().runs:
            assert time.monotonic() < ends_s
            assert process.poll() is None
            time.sleep(0.1)  # until the first case was run: nothing tells
        workers = [child.pid for child in psutil.Process(process.pid).children()]
        assert workers
        for pid in workers:  # a changed copy of the code is hunted by running its command
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            assert any(each.startswith(f"PYTHONPATH={root}".encode()) for each in environment)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == exit_codes.INTERRUPTED
    assert f"cutset hunt nemesis {shlex.join(LITTLE[:4])}" in said
    assert "interrupted; continue with: " in said
    assert f"-o {tmp_path}\n" in said
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    assert directory.progress().runs >= 1
