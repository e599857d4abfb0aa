"""An archived run is repeated from its archive alone, and its claims are checked."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.timelines import summary
from experiments.campaigns.sweepdir import SweepDirectory, SweepRun
from experiments.loader import load_experiment
from experiments.records.rundir import RunDirectory
from testbed.campaign.sweeps.sweep import RunningSweep
from testbed.cli import main
from testbed.planning import make_plan
from testbed.runner.run_control import prepare
from testbed.sweeps import plain
from tests.testbed.campaign.repacking import plant, repacked
from tests.testbed.runner.live import write_experiment
from topologies.loader import load_topology

VIRTUAL = "on: simulator\ncaptures: none\nexpect: [events.lost == 0]\n"
NAME = "20260314T020000Z-letters-0a1b2c"
POST = """\
name: post
needs: [{program: no-such-broker, get: apt-get install no-such-broker}]
contract: {published: sent, since: subscription, order: stream, delivery: at-most-once}
roles: {publisher: {traits: [publisher], run: [no-such-broker]}}
"""
LETTERS = """\
name: letters
topology: two-regions
system: ./post.yaml
roles: {publisher: 1}
workload: {event_size: 40B, rate: 1/s}
duration: 1s
"""


def archive_of(folder: Path, *options: str, faults: str) -> Path:
    """Make, analyse and pack a run in a separate folder, and remove the folder's other files."""
    made = folder / "made"
    made.mkdir()
    experiment = write_experiment(made, faults=faults)
    assert main.run(["run", str(experiment), "--out", str(made / "runs"), *options]) == 0
    [run] = (made / "runs").iterdir()
    assert main.run(["export", str(run), "-o", str(folder / "archive.tar.zst")]) == 0
    shutil.rmtree(made)
    return folder / "archive.tar.zst"


@pytest.fixture(scope="module")
def virtual(tmp_path_factory):
    return archive_of(tmp_path_factory.mktemp("virtual"), faults=VIRTUAL)


@pytest.fixture
def archive(virtual, tmp_path, monkeypatch):
    """Copy the archive to a colleague's otherwise empty working directory."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copy(virtual, tmp_path / "tiny.tar.zst"))


def reproduce(archive: Path, *options: str) -> int:
    return main.run(["reproduce", str(archive), *options])


def the_repeats() -> SweepDirectory:
    [path] = Path("runs").iterdir()
    return SweepDirectory.open(path)


def forging(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Return a change of a run's directory that changes run.json."""

    def forge(run: Path) -> None:
        record = json.loads((run / "run.json").read_text())
        change(record)
        (run / "run.json").write_text(json.dumps(record))

    return forge


def verdicts(said: str) -> dict[str, str]:
    """Return the verdict of each shown claim."""
    rows = re.findall(r"^  (\S+) .* (HOLDS|DIFFERS|UNDECIDED)(?:: .*)?$", said, re.MULTILINE)
    return dict(rows)


@pytest.mark.slow
def test_a_run_in_virtual_time_gives_exactly_the_same_results(archive, capsys):
    assert reproduce(archive) == 0
    said = capsys.readouterr().out
    assert said.startswith(
        "archived: tiny, seed 1, in virtual time, passed\n"
        "here: 1 passed; 1 in all, with the archive's plan and seed\n"
        "machine and versions: as in the archive\n"
    )
    assert set(verdicts(said).values()) == {"HOLDS"}
    last = r"reproduced: all \d+ claims hold exactly, in virtual time, and 6 files of deliveries are the same"
    assert re.fullmatch(f"{last} to the byte", said.splitlines()[-1])
    directory = the_repeats()
    [run] = directory.read().runs
    assert (run.seed, run.verdict) == (1, "passed")
    assert directory.run_of(run).summary_json.is_file()
    assert {path.name for path in Path.cwd().iterdir()} == {"tiny.tar.zst", "runs"}


@pytest.mark.slow
def test_changed_content_differs_and_is_undecided_without_a_valid_repeat(archive, capsys):
    assert reproduce(archive) == 0
    directory = the_repeats()
    resume = ("--resume", str(directory.path))
    repacked(archive, lambda run: plant(run, "events.delivered", 7))
    capsys.readouterr()
    assert reproduce(archive, *resume) == 1
    said = capsys.readouterr().out
    assert re.search(r"^  events\.delivered +7 +[\d,]+ +DIFFERS$", said, re.MULTILINE)
    assert re.fullmatch(r"not reproduced: 1 of \d+ claims differ", said.splitlines()[-1])

    def forge(run: Path) -> None:
        path = run / "deliveries" / "r1-client-0.deliveries"
        path.write_bytes(path.read_bytes()[:-40])

    repacked(archive, forge)
    assert reproduce(archive, *resume) == 1
    said = capsys.readouterr().out
    assert "  deliveries/r1-client-0.deliveries: differs from the archive\n" in said
    assert said.endswith(" claims differ, 1 of 6 files of deliveries differ\n")

    content = json.loads(directory.sweep_json.read_text())
    content["runs"][0] |= {"verdict": "invalid"}
    directory.sweep_json.write_text(json.dumps(content))
    assert reproduce(archive, *resume) == 1
    said = capsys.readouterr().out
    why = "no repeat was measured"
    assert re.search(rf"^  all \d+ claims are UNDECIDED: {why}$", said, re.MULTILINE)
    assert "not reproduced: none of 1 repeats were valid" in said


OF_A_BUSY_MACHINE = {"latency", "convergence", "fidelity"}
"""Kinds of figures that other load on the processors may change beyond the spread of four repeats: times."""


@pytest.mark.network
def test_a_small_run_of_real_processes_holds_and_a_planted_number_does_not(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(summary, "machine_problems", lambda record, metadata: [])  # however busy it is
    settings = ("--set", "workload.rate=200/s", "--set", "captures={where: [hosts]}")
    archive = archive_of(tmp_path, *settings, faults="")
    options = ("--repeat", "4", "--within", "50")
    capsys.readouterr()
    code = reproduce(archive, *options)
    said = capsys.readouterr().out
    here = "here: 4 passed; 4 in all"
    assert f"archived: tiny, seed 1, with real processes, passed\n{here}" in said
    found = verdicts(said)
    assert {"verdict", "events.lost", "throughput.events_per_s", "latency.p50_ms"} <= found.keys()
    off = {figure for figure, verdict in found.items() if verdict != "HOLDS"}
    assert {figure.partition(".")[0] for figure in off} <= OF_A_BUSY_MACHINE
    assert code == (1 if off else 0)
    assert off or re.fullmatch(r"reproduced: all \d+ claims hold", said.splitlines()[-1])

    directory = the_repeats()
    repeats = [directory.run_of(run).read_run() for run in directory.read().runs]
    assert [record.seed for record in repeats] == [1] * 4
    assert [record.plan.workload["rate_per_s"] for record in repeats] == [200] * 4
    assert all(record.captures and record.links != "simulator" for record in repeats)

    repacked(archive, lambda run: plant(run, "throughput.events_per_s", 5.0))
    assert reproduce(archive, *options, "--resume", directory.name) == 1
    said = capsys.readouterr().out
    now_off = {figure for figure, verdict in verdicts(said).items() if verdict != "HOLDS"}
    assert now_off == off | {"throughput.events_per_s"}
    total = len(off) + 1
    assert re.fullmatch(rf"not reproduced: {total} of \d+ claims differ", said.splitlines()[-1])


@pytest.mark.slow
def test_an_interrupted_reproduction_prints_the_command_to_resume(archive, monkeypatch, capsys):
    end_run = RunningSweep.end_run

    def interrupted(sweep: RunningSweep, run: SweepRun) -> str:
        end_run(sweep, run)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunningSweep, "end_run", interrupted)
        assert reproduce(archive, "--repeat", "2") == 130
    directory = the_repeats()
    assert [run.verdict for run in directory.read().runs] == ["passed", None]
    kept = directory.run_of(directory.read().runs[0]).summary_json.stat().st_mtime_ns
    said = capsys.readouterr().out
    [going_on] = re.findall(r"^interrupted: continue with `cutset (.*)`$", said, re.MULTILINE)
    assert reproduce(archive, "--resume", str(directory.path)) == 2
    assert capsys.readouterr().err == (
        f"cutset: --resume {directory.path}: cannot continue: it began with --on simulator --repeat 2"
        " and seed 1\n"
    )
    assert main.run(shlex.split(going_on)) == 0
    said = capsys.readouterr()
    assert "1 of 2 runs to go\n" in said.err
    assert said.out.splitlines()[-1].startswith("reproduced: ")
    assert [run.verdict for run in directory.read().runs] == ["passed"] * 2
    assert directory.run_of(directory.read().runs[0]).summary_json.stat().st_mtime_ns == kept
    repacked(archive, forging(lambda record: record["plan"].update(duration_us=1)))
    assert main.run(shlex.split(going_on)) == 2
    assert f"cannot continue: it is not a reproduction of {archive}\n" in capsys.readouterr().err


def test_a_truncated_archive_is_refused(archive, capsys):
    content = archive.read_bytes()
    archive.write_bytes(content[: len(content) // 2])
    assert reproduce(archive) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert re.match(rf"cutset: {archive}: is (truncated|damaged, or no packed run): ", line)
    assert [path.name for path in Path.cwd().iterdir()] == [archive.name]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda run: (run / "claims.json").unlink(),
            "claims nothing that could be reproduced: it has no claims.json",
        ),
        (lambda run: (run / "claims.json").write_text("[1"), "claims.json: is not JSON"),
        (lambda run: (run / "claims.json").write_text("{}"), "claims.json: claims: holds no claims"),
        (
            lambda run: plant(run, "events.lost", [0]),
            "is not a claim: it needs figure, value, bar and tolerance",
        ),
        (
            forging(lambda record: record.update(shell={"with_faults": True})),
            "was made at the prompt of `cutset shell`: manual commands cannot be reproduced",
        ),
        (
            forging(lambda record: record["plan"].update(system="sprinkle")),
            "there is no system sprinkle here: did you mean sprinkler?",
        ),
        (
            forging(lambda record: record["plan"]["parameters"].update(keep_fanout=False)),
            "has the parameter keep_fanout of another version of sprinkler: reproduce it there",
        ),
        (
            forging(lambda record: record["plan"].update(experiment="../../tiny")),
            "is not the name of a file or folder",
        ),
        (forging(lambda record: record["plan"].pop("links")), "run.json: plan.links: "),
    ],
    ids=[
        "no claims",
        "no JSON",
        "none",
        "no number",
        "shell",
        "system",
        "parameter",
        "leads elsewhere",
        "no plan",
    ],
)
def test_runs_that_cannot_be_repeated_are_refused_in_one_line_before_the_start(archive, capsys, change, said):
    assert reproduce(repacked(archive, change)) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("cutset: ")
    assert said in line
    assert not list(Path.cwd().glob("runs/*"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nope.tar.zst"], "nope.tar.zst: there is no such packed run"),
        (["nope"], "nope: there is no such run"),
        (["tiny.tar.zst", "--point", "1-r0"], "--point: tiny.tar.zst is a single run"),
        (["tiny.tar.zst", "--on", "mars"], "--on: there is no backend mars"),
        (["tiny.tar.zst", "--resume", "nope"], "nope: there is no such run"),
        (["tiny.tar.zst", "--repeat", "0"], "0 is not in the range 1<=x<=1000"),
    ],
)
def test_a_missing_archive_is_bad_input(archive, capsys, given, said):
    assert archive.name == "tiny.tar.zst"
    assert main.run(["reproduce", *given]) == 2
    assert said in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_run_that_was_not_analysed_claims_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main.run(["run", str(write_experiment(tmp_path, faults=VIRTUAL)), "--no-analyze"]) == 0
    capsys.readouterr()
    assert main.run(["reproduce", "latest"]) == 2
    assert "claims nothing that could be reproduced: it was not analysed" in capsys.readouterr().err


@pytest.mark.slow
def test_one_run_of_a_sweep_is_repeated(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sweep = "sweep: {workload.rate: [100/s, 200/s]}\n"
    archive = archive_of(tmp_path, faults=sweep + VIRTUAL)
    capsys.readouterr()
    assert reproduce(archive) == 2
    names = "1-rate-100-s-r0, 2-rate-200-s-r0"
    assert f"is a sweep: name one of its runs with --point: {names}" in capsys.readouterr().err
    assert reproduce(archive, "--point", "3") == 2
    assert reproduce(archive, "--point", "2-rate-200-s-r0") == 0
    [run] = the_repeats().read().runs
    assert the_repeats().run_of(run).read_run().plan.workload["rate_per_s"] == 200


@pytest.fixture
def letters(tmp_path, monkeypatch):
    """Return a run of a system of programs, with the parts that a reproduction reads."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "post.yaml").write_text(POST)
    (tmp_path / "letters.yaml").write_text(LETTERS)
    experiment = load_experiment(str(tmp_path / "letters.yaml"))
    topology = load_topology(experiment.topology)
    plan = make_plan(experiment, topology, seed=None, links_kind="auto")
    run = RunDirectory(tmp_path / "made" / NAME)
    run.make()
    prepare(tmp_path, plan, {"experiment": plain(experiment), "topology": plain(topology)}, lambda: run)
    run.summary_json.write_text(json.dumps({"verdict": "passed"}))
    return run


def test_programs_that_are_not_installed_are_named_before_anything_starts(letters, capsys):
    assert reproduce(letters.path) == 3
    lacks = "post needs software that is not installed: `no-such-broker` (apt-get install no-such-broker)"
    assert lacks in capsys.readouterr().err
    assert not list(Path.cwd().glob("runs/*"))


def test_unknown_programs_start_only_if_trusted(letters, capsys):
    record = json.loads(letters.run_json.read_text())
    record["plan"]["programs"]["roles"]["publisher"]["run"] = ["another-broker"]
    letters.run_json.write_text(json.dumps(record))
    assert reproduce(letters.path) == 2
    said = capsys.readouterr().err
    assert "would start other programs than post has here: --trust-programs runs them anyway" in said
    assert reproduce(letters.path, "--trust-programs") == 3
    assert "needs software that is not installed" in capsys.readouterr().err
