"""A killed night's state: a run that has ended is never repeated, however it ended."""

import threading
import time
from dataclasses import replace
from pathlib import Path
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
def nights(tmp_path: Path) -> Nights:
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


def test_a_run_that_was_not_analysed_yet_is_analysed_and_not_made_again(nights):
    nights.killed("analysis.pipeline:analyze")
    [torn] = nights.record.runs
    made = read_json(nights.directory.run_of(torn).run_json)
    assert nights.run("--resume") == 0
    [run] = nights.record.runs
    assert (run.run, run.verdict, run.torn) == (torn.run, "passed", ())
    assert read_json(nights.directory.run_of(run).run_json)["times"] == made["times"]
    assert nights.kept() == {torn.run: 1}


@pytest.mark.parametrize("how", ["kill -9", "Ctrl-C"])
def test_a_run_that_could_not_be_started_is_not_tried_again(nights, monkeypatch, how):
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


def test_a_run_whose_analysis_ended_the_night_too_often_is_given_up(nights):
    nights.killed("analysis.pipeline:analyze")
    [torn] = nights.record.runs
    nights.directory.write(nights.record.with_run(replace(torn, tries=TRIES_MAX + 1)))
    assert nights.run("--resume") == 3
    [run] = nights.record.runs
    assert (run.state, run.failure) == (RunState.FAILED, FailureKind.HARNESS)
    assert "ended the night each time" in run.problem
    assert run.torn == (f"{torn.run}.torn",)


def test_a_run_that_another_command_still_has_is_waited_for(nights):
    nights.killed("analysis.pipeline:analyze")
    [torn] = nights.record.runs
    path = nights.directory.run_of(torn).path
    held = threading.Event()

    def hold():
        with folder_lock(path, wait=False):
            held.set()
            time.sleep(3.0)  # longer than commands wait that only look

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    assert nights.run("--resume") == 0
    holder.join()
    [run] = nights.record.runs
    assert (run.run, run.verdict) == (torn.run, "passed")
