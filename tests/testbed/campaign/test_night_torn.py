"""A killed night's state: a run that has ended is never repeated, however it ended."""

import shutil
import threading
import time
from dataclasses import replace
from typing import NoReturn

import pytest

from experiments.campaigns.campaign import FailureKind, RunState
from experiments.files.locks import folder_lock
from experiments.records.json_files import read_json
from testbed.campaign.nights.night import Night
from testbed.nightly.planning import TRIES_MAX
from tests.testbed.campaign.night_fixtures import Nights

pytestmark = pytest.mark.slow

NOTED = "testbed.campaign.nights.night:Night.leave"
NO_ANALYSIS = """
def broken(*_, **__):
    from analysis.errors import AnalysisError
    raise AnalysisError("odd captures")
import testbed.campaign.one_run
testbed.campaign.one_run.conclude = broken
"""
CRASHES = """
from tests.run_json import set_run
import testbed.campaign.one_run as one
conclude = one.conclude
def crashed(made, record, follow, **more):
    set_run(made, outcome="crashed", problems=["the relay died"])
    return conclude(made, made.read_run(), follow, **more)
one.conclude = crashed
"""


@pytest.fixture
def nights(tmp_path):
    nights = Nights(tmp_path)
    nights.suite("name: good")
    return nights


def ctrl_c(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def test_a_run_whose_analysis_failed_stays_failed(nights):
    nights.killed(NOTED, first=NO_ANALYSIS)
    [torn] = nights.record.runs
    assert torn.state is RunState.RUNNING
    assert nights.kept() == {torn.run: 1}
    assert nights.run("--resume") == 3
    [run] = nights.record.runs
    assert (run.run, run.state, run.failure) == (torn.run, RunState.FAILED, FailureKind.HARNESS)
    assert (run.tries, run.torn) == (1, ())
    assert nights.kept() == {torn.run: 1}


def test_a_run_that_crashed_stays_crashed(nights):
    nights.killed("testbed.campaign.one_run:write_page", first=CRASHES)
    [torn] = nights.record.runs
    assert nights.run("--resume") == 1
    [run] = nights.record.runs
    assert (run.run, run.verdict, run.failure) == (torn.run, "crashed", FailureKind.CRASH)
    assert nights.directory.run_of(run).report_html.is_file()
    assert nights.kept() == {torn.run: 1}


@pytest.mark.parametrize("how", ["kill -9", "Ctrl-C"])
def test_a_run_that_could_not_start_is_not_retried(nights, monkeypatch, how):
    endless = "set: {duration: 20h, workload.rate: 1000000/s, captures: {snaplen: full, where: [hosts]}}"
    nights.suite(f"name: huge, on: local, {endless}", budget="2d")
    if how == "kill -9":
        nights.killed(NOTED)
    else:
        with monkeypatch.context() as patched:
            patched.setattr(Night, "leave", ctrl_c)
            assert nights.run() == 130
    [name] = nights.kept()
    assert nights.run("--resume") == 3
    [run] = nights.record.runs
    assert (run.state, run.failure, run.tries) == (RunState.FAILED, FailureKind.HARNESS, 1)
    assert "the captures need about" in run.problem
    assert nights.kept() == {name: 1}


@pytest.fixture(scope="module")
def before_analysis(tmp_path_factory):
    """Return a night that was killed before its run was analysed, and a copy of its folder."""
    nights = Nights(tmp_path_factory.mktemp("nights"))
    nights.suite("name: good")
    nights.killed("analysis.pipeline:analyze")
    return nights, shutil.copytree(nights.folder, tmp_path_factory.mktemp("copies") / "torn")


@pytest.fixture
def unanalysed(before_analysis):
    nights, copy = before_analysis
    shutil.rmtree(nights.folder)
    shutil.copytree(copy, nights.folder)
    return nights


def test_a_run_whose_analysis_ended_the_night_too_often_is_given_up(unanalysed):
    [torn] = unanalysed.record.runs
    unanalysed.directory.write(unanalysed.record.with_run(replace(torn, tries=TRIES_MAX + 1)))
    assert unanalysed.run("--resume") == 3
    [run] = unanalysed.record.runs
    assert (run.state, run.failure) == (RunState.FAILED, FailureKind.HARNESS)
    assert "ended the night each time" in run.problem
    assert run.torn == (f"{torn.run}.torn",)


def test_an_ended_run_is_only_analysed_once_no_command_uses_it(unanalysed):
    [torn] = unanalysed.record.runs
    path = unanalysed.directory.run_of(torn).path
    made = read_json(path / "run.json")
    held = threading.Event()

    def hold():
        with folder_lock(path, wait=False):
            held.set()
            time.sleep(3.0)  # longer than commands wait that only look

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    assert unanalysed.run("--resume") == 0
    holder.join()
    [run] = unanalysed.record.runs
    assert (run.run, run.verdict, run.torn) == (torn.run, "passed", ())
    assert read_json(path / "run.json")["times"] == made["times"]
    assert unanalysed.kept() == {torn.run: 1}
