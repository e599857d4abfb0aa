"""The plan of a night, and the runs that still fit into it."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from experiments.campaigns.campaign import RunState
from experiments.campaigns.nights import NightRecord, NightRun
from experiments.suite import SuiteFile, read_suite
from testbed.nightly.planning import (
    AROUND_A_RUN_S,
    DurationEstimate,
    budget_left_s,
    check_jobs,
    digest,
    new_record,
    seed_of,
)
from topologies.errors import InputError

SUITE = """
suite: small
budget: 5min
entries:
  - {name: cut, experiment: link-failure, repeat: 3, budget: 4min}
  - {name: virtual, experiment: fanout-shuffle, set: {roles.client: 10}}
"""
NIGHT = date(2026, 11, 21)


@pytest.fixture
def file(tmp_path: Path) -> SuiteFile:
    (tmp_path / "small.yaml").write_text(SUITE)
    return read_suite(str(tmp_path / "small.yaml"))


@pytest.fixture
def record(file: SuiteFile) -> NightRecord:
    return new_record(file, NIGHT, commit=None, started_ns=0)


def done(run: NightRun, took_s: float) -> NightRun:
    return replace(run, state=RunState.DONE, verdict="passed", duration_s=took_s)


def test_a_night_has_every_entry_in_order_with_its_repeats(record):
    assert [(run.entry, run.repetition, run.backend) for run in record.runs] == [
        ("cut", 0, "local"),
        ("cut", 1, "local"),
        ("cut", 2, "local"),
        ("virtual", 0, "simulator"),
    ]
    assert record.budget_s == 300


def test_seeds_follow_from_the_date(file, record):
    assert new_record(file, NIGHT, commit="c", started_ns=1).runs == record.runs
    tomorrow = new_record(file, date(2026, 11, 22), commit=None, started_ns=0)
    seeds = [run.seed for run in (*record.runs, *tomorrow.runs)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 1 << 31 for seed in seeds)
    assert record.runs[0].seed == seed_of(NIGHT, "small", "cut", 0)


def test_a_seed_is_the_same_in_every_version():
    assert seed_of(NIGHT, "quick", "link-failure", 0) == 1668930775


def test_the_digest_changes_with_everything_that_determines_runs(file, tmp_path):
    same, other = tmp_path / "same.yaml", tmp_path / "other.yaml"
    same.write_text(SUITE + "# and a remark\n")
    other.write_text(SUITE.replace("client: 10", "client: 11"))
    assert digest(read_suite(str(same))) == digest(file)
    assert digest(read_suite(str(other))) != digest(file)


def test_a_runs_duration_is_estimated_then_known_from_earlier_nights_then_from_tonight(file, record):
    first = record.runs[0]
    assert DurationEstimate(file, {}).estimate_s(first, record) == 60 + AROUND_A_RUN_S
    expected = DurationEstimate(file, {"cut": 70.0})
    assert expected.estimate_s(first, record) == 70
    tonight = record.with_run(done(first, 90.0)).with_run(done(record.runs[1], 85.0))
    assert expected.estimate_s(record.runs[2], tonight) == 90
    assert expected.left_s(tonight) == 90 + 1 + AROUND_A_RUN_S


def test_a_run_may_take_the_remaining_budget_of_night_and_entry(file, record):
    cut, virtual = record.runs[1], record.runs[3]
    assert budget_left_s(cut, record, file) == 240
    later = replace(record.with_run(done(record.runs[0], 200.0)), spent_s=210.0)
    assert budget_left_s(cut, later, file) == 40
    assert budget_left_s(virtual, later, file) == 90


def test_real_runs_never_run_in_parallel(file, tmp_path):
    check_jobs(8, file)
    alone = tmp_path / "alone.yaml"
    alone.write_text("suite: alone\nbudget: 1min\nentries: [{name: cut, experiment: link-failure}]\n")
    check_jobs(1, read_suite(str(alone)))
    with pytest.raises(InputError, match="--jobs: alone has nothing in virtual time, and runs of real"):
        check_jobs(2, read_suite(str(alone)))
