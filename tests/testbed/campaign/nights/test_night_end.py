"""The end of a night: hooks are called after any error, and `--resume` completes the remaining steps."""

import errno
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import analysis.pages.nights
from analysis.errors import AnalysisError
from analysis.history import History, pruning
from analysis.history.pruning import Pruning
from analysis.history.regressions import checking
from analysis.history.regressions.findings import NightFindings, RegressionFinding
from experiments.campaigns.campaign import FailureKind, RunState
from testbed.campaign.nights import night, night_one
from testbed.campaign.nights.night_end import exit_code, finding_line
from tests.campaigns import night_record, night_run
from tests.testbed.campaign.night_fixtures import NEVER, NIGHT, NO_TIME, Nights

HOLDER = """
import sys
from pathlib import Path
from experiments.files.locks import file_lock
with file_lock(Path(sys.argv[1]), who="another user"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path)


@pytest.fixture
def short(nights):
    """Return a night without time for its only entry, so that it ends at once."""
    nights.suite(f"name: long, set: {NO_TIME}", budget="1min")
    return nights


def broken(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, error: Exception) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(owner, name, fail)


def finding(entry: str) -> RegressionFinding:
    return RegressionFinding(
        suite="small", entry=entry, metric="latency.p99_ms", unit="ms", kind="tonight", direction="worse",
        before=10.0, after=15.0, change=0.5, interval=None, first_bad_night=NIGHT, last_good_night=NIGHT,
        earliest_night=NIGHT, latest_night=NIGHT, first_bad_commit="", last_good_commit="", also_changed=(),
        runs_before=(), runs_after=(), confidence=1.0, new=True,
    )  # fmt: skip


@pytest.mark.slow
def test_a_night_killed_before_its_notification_is_completed_by_resume(nights, tmp_path):
    nights.suite(f"name: bad, set: {NEVER}")
    nights.killed("testbed.campaign.nights.night_end:call", "--hook", "true")
    (tmp_path / "history/site/index.html").unlink()
    assert nights.run("--resume", "--hook", nights.hook) == 1
    assert [message["exit_code"] for message in nights.told()] == [1]
    assert (tmp_path / "history/site/index.html").is_file()
    assert nights.record.runs[0].tries == 1
    assert nights.run("--resume", "--hook", nights.hook) == 1  # as it ended
    assert len(nights.told()) == 1


@pytest.mark.slow
def test_a_full_disk_is_reported_and_the_current_run_is_recorded_later(nights, monkeypatch):
    nights.suite("name: good")
    with monkeypatch.context() as patched:
        broken(patched, History, "append", AnalysisError("No space left on device"))
        assert nights.run("--hook", nights.hook) == 1
    [message] = nights.told()
    assert message["outcome"] == "crashed"
    assert "No space left on device" in message["text"]
    assert (nights.record.outcome, nights.record.exit_code) == ("crashed", 1)
    assert nights.cases() == [("regressions", ["error"])]
    [torn] = nights.record.runs
    assert nights.run("--resume") == 0
    [run] = nights.record.runs
    assert (run.run, run.verdict) == (torn.run, "passed")
    assert nights.kept() == {run.run: 1}


def test_on_a_full_disk_a_night_is_incomplete_and_names_the_remedy(short, monkeypatch, capsys):
    with monkeypatch.context() as patched:
        patched.setattr(night, "ROOM_BYTES_MIN", 1 << 60)
        assert short.run("--hook", short.hook) == 3
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("cutset: the disk is full, ")
    assert line.endswith("prune --keep SIZE`, then continue with `cutset nightly small --resume`")
    assert (short.record.outcome, short.record.exit_code) == ("crashed", 3)
    assert [run.state for run in short.record.runs] == [RunState.PENDING]
    [message] = short.told()
    assert message["exit_code"] == 3
    assert "the disk is full" in message["text"]
    assert short.run("--resume") == 0
    assert short.record.outcome == "completed"


@pytest.mark.slow
def test_a_run_that_a_full_disk_broke_is_made_again(nights, monkeypatch):
    nights.suite("name: good")
    with monkeypatch.context() as patched:

        def fill(*_: object, **__: object) -> None:
            patched.setattr(night, "ROOM_BYTES_MIN", 1 << 60)
            raise OSError(errno.ENOSPC, "No space left on device")

        patched.setattr(night_one, "make", fill)
        assert nights.run() == 3
    [torn] = nights.record.runs
    assert (torn.state, len(torn.torn)) == (RunState.PENDING, 1)
    assert nights.run("--resume") == 0
    [run] = nights.record.runs
    assert (run.verdict, run.tries) == ("passed", 2)


@pytest.mark.parametrize(
    ("owner", "name", "kind", "said", "code"),
    [
        (checking, "check_night", OSError, "the night was not checked", 1),
        (analysis.pages.nights, "write_site", ZeroDivisionError, "the morning page was not written", 0),
        (pruning, "plan_pruning", AnalysisError, "no room was made on the disk", 0),
    ],
)
def test_errors_at_the_end_are_reported_and_the_rest_is_done(
    short, monkeypatch, capsys, owner, name, kind, said, code
):
    broken(monkeypatch, owner, name, kind("broken"))
    assert short.run("--keep", "1GB", "--hook-always", short.hook) == code
    assert f"problem: {said}: broken" in capsys.readouterr().err
    assert [message["exit_code"] for message in short.told()] == [code]
    assert (short.record.outcome, short.record.exit_code) == ("completed", code)
    assert ("Traceback" in short.directory.log.read_text()) is (kind is ZeroDivisionError)


def test_a_night_that_was_not_checked_is_not_fine(short, monkeypatch, capsys):
    broken(monkeypatch, checking, "check_night", AnalysisError("its history is odd"))
    assert short.run("--hook", short.hook) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "night        not checked"
    assert "unchecked    its history is odd" in said
    error = ElementTree.parse(short.directory.junit_xml).find(".//testcase[@name='regressions']/error")
    assert error.text == "not checked: its history is odd"
    [message] = short.told()
    assert message["subject"].endswith(": not checked")
    assert short.record.unchecked == message["unchecked"] == "its history is odd"


@pytest.mark.parametrize(
    ("worse", "code", "shown"), [(["may"], 0, ["skipped"]), (["must", "may"], 1, ["failure"])]
)
def test_regressions_of_entries_that_may_fail_are_shown_and_the_night_passes(
    nights, monkeypatch, capsys, worse, code, shown
):
    nights.suite(
        f"name: must, set: {NO_TIME}", f"name: may, set: {NO_TIME}, allow_failure: true", budget="1min"
    )
    checked = NightFindings(NIGHT, tuple(map(finding, worse)), (), 2)
    monkeypatch.setattr(checking, "check_night", lambda *_: checked)
    assert nights.run() == code
    assert nights.record.exit_code == code
    assert dict(nights.cases())["regressions"] == shown
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("(allowed)") for line in lines if line.startswith("worse")] == [
        entry == "may" for entry in worse
    ]


def test_the_line_of_a_finding_names_other_changes():
    same = replace(finding("cut"), first_bad_commit="c1", last_good_commit="c1")
    line = finding_line(same)
    assert line.endswith(", since 2026-11-21, the same commit")
    changed = replace(same, also_changed=("workload.rate 2000/s -> 1000/s",))
    assert finding_line(changed) == f"{line}; also changed: workload.rate 2000/s -> 1000/s"


def test_disk_space_is_freed_again_after_the_page_and_uncounted_files_are_reported(
    short, monkeypatch, capsys
):
    page = short.history / "site/index.html"
    found = []

    def write_site(*_: object, **__: object) -> Path:
        page.parent.mkdir()
        page.touch()
        return page

    def plan_pruning(*_: object) -> Pruning:
        found.append(page.exists())
        return Pruning((), 0, 0, untouched=("runs/odd: is no run",))

    monkeypatch.setattr(analysis.pages.nights, "write_site", write_site)
    monkeypatch.setattr(pruning, "plan_pruning", plan_pruning)
    assert short.run("--keep", "1GB") == 0
    assert found == [False, True]
    assert capsys.readouterr().err.count("problem: --keep removes nothing of it: runs/odd: is no run") == 1


def test_the_hook_is_notified_if_a_night_could_not_begin(short, capsys):
    assert short.run() == 0
    assert short.run("--hook", short.hook) == 2
    assert short.run("--out", "/proc/nope", "--hook", short.hook) == 3
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "cannot write /proc/nope/nights (--out): No such file or directory" in said
    (short.folder / "small.yaml").write_text("suite: small\n")
    assert short.run("--hook", short.hook) == 2
    assert [(message["outcome"], message["exit_code"]) for message in short.told()] == [
        ("not begun", 2),
        ("not begun", 3),
        ("not begun", 2),
    ]
    assert "this night has begun already" in short.told()[0]["text"]


def test_runs_of_a_running_night_are_not_changed_by_another_history(short, capsys):
    short.directory.write(short.planned())
    lock = short.directory.path.parent / "nightly.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        assert short.run("--resume", "--history", str(short.folder / "other")) == 3
        other.communicate()
    assert "another night is running in" in capsys.readouterr().err
    assert short.record == short.planned()


@pytest.mark.parametrize(
    ("failures", "findings", "code"),
    [
        ((None, None), (), 0),
        ((None, FailureKind.EXPECTATION), (), 1),
        ((None, FailureKind.FIDELITY), (), 1),
        ((None, FailureKind.HARNESS), (), 3),
        ((FailureKind.CRASH, FailureKind.HARNESS), (), 1),
        ((None, None), ("slower",), 1),
        ((None, FailureKind.HARNESS), ("slower",), 1),
    ],
)
def test_the_exit_code_of_a_night(failures, findings, code):
    runs = [night_run(repetition=number, failure=failure) for number, failure in enumerate(failures)]
    record = night_record(*runs, findings=findings)
    assert exit_code(record) == code
    allowed = replace(record, runs=tuple(replace(run, allow_failure=True) for run in runs), findings=())
    assert exit_code(allowed) == 0
    assert exit_code(replace(allowed, findings_allowed=("slower",))) == 0
    assert exit_code(replace(allowed, unchecked="the history is damaged")) == 1
