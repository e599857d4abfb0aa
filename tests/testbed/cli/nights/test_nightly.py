"""`cutset nightly`: its output and files, and resumption after any end."""

import json
import re
import signal
from collections import Counter
from dataclasses import replace
from datetime import date

import pytest

from analysis.history import History
from experiments.campaigns.campaign import FailureKind, RunState
from experiments.campaigns.nights import NightDirectory
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.records.run_record import Outcome
from experiments.records.rundir import RunDirectory
from testbed.backends.backend import Follow
from testbed.backends.simulator import Simulator
from testbed.runner.run_control import RunResult
from tests.experiments.campaigns.test_campaign import WRITTEN
from tests.testbed.campaign.night_fixtures import IN_A_RUN, NEVER, NIGHT, NO_TIME, Nights

pytestmark = pytest.mark.slow


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path)


def test_a_night_runs_its_suite_and_leaves_results_history_and_page(nights, tmp_path, capsys):
    nights.suite("name: good", f"name: bad, set: {NEVER}")
    assert nights.run("--hook", nights.hook) == 1
    said = capsys.readouterr()

    record = nights.record
    assert [(run.name, run.state, run.verdict, run.failure) for run in record.runs] == [
        ("good r0", RunState.DONE, "passed", None),
        ("bad r0", RunState.DONE, "failed", FailureKind.EXPECTATION),
    ]
    assert (record.outcome, record.exit_code) == ("completed", 1)
    assert nights.kept() == Counter(run.run for run in record.runs)
    assert all(nights.directory.run_of(run).report_html.is_file() for run in record.runs)
    assert (tmp_path / "history/site/index.html").is_file()

    assert nights.cases() == [
        ("good r0", ["properties"]),
        ("bad r0", ["properties", "failure"]),
        ("regressions", []),
    ]
    [message] = nights.told()
    assert [run["title"] for run in message["failed"]] == ["bad r0"]
    assert message["subject"].endswith(": 1 of 2 runs failed")

    lines = said.err.splitlines()
    assert lines[0] == f"night {NIGHT} of small: 2 runs to go"
    assert lines[1].startswith(f"[1/2] good r0 seed {record.runs[0].seed}: passed, ")
    assert "took" in lines[1]
    assert lines[1].endswith(" left")
    assert lines[2].startswith(
        f"[2/2] bad r0 seed {record.runs[1].seed}: failed: latency.p99_ms <= 0.001 did"
    )
    assert said.out.splitlines()[:2] == [
        "night        1 of 2 runs failed",
        "runs         1 passed, 1 failed; 2 in all",
    ]
    log = nights.directory.log.read_text().splitlines()
    assert [line.partition(" ")[2] for line in log[:3]] == lines[:3]


def test_a_whole_sweep_is_one_run_of_a_night_with_its_expectations(nights, capsys):
    swept = "sweep: {roles.client: [1, 2]}"
    held, missed = "max(latency.p99_ms) by roles.client <= 60000", "min(events.published) >= 1e9"
    nights.suite(
        f"name: good, sweep: true, set: {{{swept}, expect_sweep: ['{held}']}}",
        f"name: bad, sweep: true, set: {{{swept}, expect_sweep: ['{missed}']}}",
    )
    assert nights.run() == 1
    good, bad = nights.record.runs
    assert (good.state, good.verdict, good.failure, good.problem) == (RunState.DONE, "passed", None, None)
    assert (bad.verdict, bad.failure) == ("failed", FailureKind.EXPECTATION)
    assert bad.problem == "min(events.published) >= 1000000000.0 did not hold"
    for run in (good, bad):
        sweep = SweepDirectory(nights.directory.run_of(run).path)
        assert [run.verdict for run in sweep.read().runs] == ["passed"] * 2
        assert sweep.read().seed == run.seed
        assert sweep.report_html.is_file()
    assert nights.cases()[:2] == [("good r0", ["properties"]), ("bad r0", ["properties", "failure"])]
    assert nights.kept() == Counter()  # the history has single points only


def test_the_same_night_is_not_run_twice(nights, capsys):
    nights.suite("name: good")
    nights.directory.write(replace(nights.planned(), outcome=Outcome.COMPLETED, exit_code=1))
    assert nights.run() == 2
    assert "this night has begun already: set another date with --date" in capsys.readouterr().err
    assert nights.run("--resume") == 1  # as it was
    assert f"nothing to resume: the night {NIGHT} of small is over" in capsys.readouterr().err
    nights.directory.write(nights.planned())
    assert nights.run() == 2
    assert "this night has begun already: continue it with --resume" in capsys.readouterr().err
    assert not (nights.folder / "history/runs").exists()


def as_begun(nights, **changed) -> None:
    """Write the night's record as an interrupted command leaves it. changed: fields of its second run."""
    begun = json.loads((WRITTEN / "night.json").read_text())
    planned = nights.planned()
    del begun["runs"][len(planned.runs) :]
    for run, now in zip(begun["runs"], planned.runs, strict=True):
        run |= {"name": now.name, "entry": now.entry, "repetition": now.repetition, "seed": now.seed}
    begun["runs"][1] |= changed
    nights.directory.path.mkdir(parents=True)
    nights.directory.night_json.write_text(json.dumps(begun | {"digest": planned.digest}))


def test_an_interrupted_night_resumes(nights):
    nights.suite("name: first", "name: second")
    as_begun(nights, state="pending", problem=None)
    assert nights.run("--resume") == 1
    first, second = nights.record.runs
    assert (first.name, first.run, first.failure) == (
        "first r0",
        "20261123T054440Z-tiny-e361c2",
        FailureKind.EXPECTATION,
    )
    assert (second.verdict, second.tries) == ("passed", 1)
    assert nights.kept() == {second.run: 1}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": -1.5}, r"night\.json: runs\.1\.seed: "),
        ({"name": "third r0"}, "cannot continue: it lists other runs"),
    ],
)
def test_a_damaged_record_is_bad_input(nights, capsys, changed, said):
    nights.suite("name: first", "name: second")
    as_begun(nights, **changed)
    assert nights.run("--resume") == 2
    [line] = capsys.readouterr().err.splitlines()
    assert re.search(said, line)


def test_a_killed_night_resumes_with_the_pending_runs(nights):
    nights.suite("name: first", "name: second")
    nights.killed(IN_A_RUN, calls=2)
    first, torn = nights.record.runs
    assert (first.state, torn.state) == (RunState.DONE, RunState.RUNNING)
    assert nights.kept() == {first.run: 1}

    assert nights.run("--resume") == 0
    record = nights.record
    assert record.outcome == "completed"
    assert [run.verdict for run in record.runs] == ["passed"] * 2
    assert record.runs[0] == first
    assert record.runs[1].torn == (f"{torn.run}.torn",)
    assert (nights.folder / "runs" / f"{torn.run}.torn").is_dir()
    assert not (nights.folder / "runs" / torn.run).exists()
    assert record.runs[1].tries == 2
    assert nights.kept() == Counter(run.run for run in record.runs)


@pytest.mark.parametrize(("number", "told"), [(signal.SIGINT, []), (signal.SIGTERM, ["interrupted"])])
def test_a_night_ends_tidily_and_its_hooks_are_called_if_no_user_interrupted_it(nights, number, told):
    nights.suite("name: first", "name: second", "name: third")
    assert nights.ended_by(number, IN_A_RUN, "--hook", nights.hook, calls=2) == 130
    assert [message["outcome"] for message in nights.told()] == told
    record = nights.record
    assert (record.outcome, record.exit_code) == ("interrupted", 130)
    assert [run.state for run in record.runs] == [RunState.DONE, RunState.PENDING, RunState.PENDING]
    assert [len(run.torn) for run in record.runs] == [0, 1, 0]  # what was on was set aside
    assert nights.kept() == {record.runs[0].run: 1}


def test_a_run_that_ended_just_before_a_crash_is_recorded_and_not_repeated(nights, capsys):
    nights.suite("name: good", "name: last")
    assert nights.run() == 0
    kept = nights.kept()
    record = nights.record
    unnoted = replace(
        record.runs[0], state=RunState.RUNNING, verdict=None
    )  # in the history, not in the record
    hopeless = replace(record.runs[1], state=RunState.RUNNING, tries=3, run=None)
    left = replace(record, outcome=None).with_run(unnoted).with_run(hopeless)
    nights.directory.write(left)

    assert nights.run("--resume") == 3
    runs = nights.record.runs
    assert (runs[0].run, runs[0].verdict, runs[0].tries) == (record.runs[0].run, "passed", 1)
    assert (runs[1].state, runs[1].failure) == (RunState.FAILED, FailureKind.HARNESS)
    assert runs[1].problem == "it was begun 3 times, and ended the night each time"
    [added] = set(nights.kept()) - set(kept)
    assert added.endswith("-last-0-not-started")
    assert set(nights.kept().values()) == {1}


def test_runs_beyond_the_budget_are_skipped_and_reported(nights, capsys):
    nights.suite("name: good", f"name: long, set: {NO_TIME}", budget="1min")
    assert nights.run() == 0
    _, long = nights.record.runs
    assert long.state is RunState.SKIPPED
    assert "long r0 seed" in (said := capsys.readouterr().err)
    assert "left out (no time left: it takes about 620 s, and" in said
    assert "long r0" in (nights.history / "site/index.html").read_text()


def test_a_run_that_exceeds_the_remaining_budget_is_stopped(nights, monkeypatch):
    execute = Simulator.execute

    def soon_over(place: Simulator, run: RunDirectory, follow: Follow) -> RunResult:
        signal.setitimer(signal.ITIMER_REAL, 0.01, 5)  # in the middle of it, however long it took to begin
        return execute(place, run, follow)

    monkeypatch.setattr(Simulator, "execute", soon_over)
    nights.suite("name: slow, set: {workload.rate: 200000/s, duration: 900s}", budget="1min")
    record = nights.planned()
    used_to_be_fast = replace(record.runs[0], state=RunState.DONE, verdict="passed", duration_s=0.2)
    NightDirectory.for_night(nights.folder / "runs", date(2026, 11, 20), "small").write(
        record.with_run(used_to_be_fast)
    )
    nights.directory.write(replace(record, spent_s=30.0))
    assert nights.run("--resume") == 3
    [slow] = nights.record.runs
    assert (slow.state, slow.failure) == (RunState.FAILED, FailureKind.HARNESS)
    assert slow.problem.startswith("it was stopped after 30 s")
    assert nights.kept() == {slow.run: 1}


def test_missing_features_of_the_machine_fail_the_run_but_not_the_night(nights):
    endless = "set: {duration: 20h, workload.rate: 1000000/s, captures: {snaplen: full, where: [hosts]}}"
    nights.suite(f"name: huge, on: local, {endless}", "name: good", budget="2d")
    assert nights.run() == 3
    huge, good = nights.record.runs
    assert (huge.state, huge.failure, good.verdict) == (RunState.FAILED, FailureKind.HARNESS, "passed")
    assert "the captures need about" in huge.problem
    assert sum(nights.kept().values()) == 2  # it stands there as not started


def test_runs_in_virtual_time_may_run_in_parallel(nights, capsys):
    nights.suite("name: good", f"name: bad, set: {NEVER}, allow_failure: true")
    assert nights.run("--jobs", "2") == 0
    record = nights.record
    assert [run.verdict for run in record.runs] == ["passed", "failed"]
    assert nights.kept() == Counter(run.run for run in record.runs)
    allowed = History(nights.history).runs()
    assert dict(zip(allowed["entry"].to_pylist(), allowed["allow_failure"].to_pylist(), strict=True)) == {
        "good": False,
        "bad": True,
    }


def test_a_changed_suite_does_not_resume(nights, capsys):
    nights.suite("name: good")
    nights.directory.write(nights.planned())
    nights.suite("name: good, set: {duration: 2s}")
    assert nights.run("--resume") == 2
    assert "cannot continue: the suite was changed since it began" in capsys.readouterr().err


def test_nights_stay_within_their_disk_limit(nights, capsys):
    nights.suite("name: good")
    assert nights.run("--keep", "50kB") == 0
    [run] = nights.record.runs
    made = nights.directory.run_of(run)
    assert made.summary_json.is_file()
    assert not list(made.analysis.glob("*"))
    assert f"{run.run}: tables removed" in nights.directory.log.read_text()


def test_dry_shows_the_runs_and_writes_nothing(nights, capsys):
    nights.suite("name: good, repeat: 2")
    assert nights.run("--dry") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["good", "r0"]
    assert lines[-1] == "2 runs, about 43 s of at most 10 min 00 s"
    assert not (nights.folder / "runs").exists()


def test_waits_and_disk_budgets_are_parsed_with_units(nights, monkeypatch):
    asked = []
    monkeypatch.setattr("testbed.campaign.nights.night_run.run_night", lambda night: asked.append(night) or 0)
    assert nights.run("--wait", "2min", "--keep", "50GB") == 0
    assert (asked[0].wait_s, asked[0].options.keep_bytes) == (120, 50 * 10**9)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--date", "2026-13-01"], "2026-13-01 is not a date, as 2026-11-21"),
        (["--hook", "'"], "is not a command"),
        (["--jobs", "0"], "0 is not in the range"),
        (["--keep", "9"], "'9' is not a size: write one such as 50GB"),
        (["--wait", "soon"], "'soon' is not a duration: write one such as 2h"),
    ],
)
def test_impossible_options_are_bad_input(nights, capsys, words, said):
    nights.suite("name: good")
    assert nights.run(*words) == 2
    assert said in capsys.readouterr().err
