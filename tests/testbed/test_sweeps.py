"""What a sweep is made of, and when one that was interrupted may go on."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.loader import read_experiment
from experiments.sweepdir import SweepDirectory
from testbed.sweeps import (
    Points,
    RunSelection,
    all_passed,
    continued,
    headline,
    new_record,
    pending,
    refuse_changed,
)
from topologies.errors import InputError

SWEPT = ["sweep={roles.driver: [1, 2]}", "repeat=2"]


def chosen(*overrides: str, seed: int | None = None, repeat: int | None = None) -> RunSelection:
    file = read_experiment("link-failure", [*SWEPT, *overrides])
    return RunSelection.of(file, backend=None, links="auto", seed=seed, repeat=repeat)


def test_options_win_over_the_file():
    assert (chosen().repeat, chosen(repeat=5).repeat) == (2, 5)
    assert (chosen().backend, chosen("on=simulator").backend) == ("local", "simulator")
    assert [run.seed for run in chosen(seed=4).runs] == [4, 4, 5, 5]


def test_one_run_is_no_sweep():
    alone = RunSelection.of(
        read_experiment("link-failure"), backend=None, links="auto", seed=None, repeat=None
    )
    assert not alone.is_sweep
    assert chosen().is_sweep


def test_a_point_has_its_values_and_no_sweep():
    experiment, topology = Points(chosen()).of(chosen().runs[1])
    assert experiment.roles["default"]["driver"] == 2
    assert (experiment.sweep, experiment.repeat, topology.name) == ({}, 1, "four-regions")


@pytest.mark.parametrize(
    ("again", "said"),
    [
        (chosen(seed=4), "the sweep began with --seed 1, not 4"),
        (chosen(repeat=3), "the sweep began with --repeat 2, not 3"),
        (chosen("workload.rate=5/s"), "cannot go on: link-failure or its topology was changed since"),
        (chosen("name=other"), "cannot go on: it is a sweep of link-failure"),
    ],
)
def test_what_was_changed_is_refused(again: RunSelection, said: str) -> None:
    directory = SweepDirectory(Path("runs/x"))
    record = new_record(directory, chosen(), Points(chosen()), None)
    refuse_changed(record, chosen(), Points(chosen()), directory)
    with pytest.raises(InputError) as error:
        refuse_changed(record, again, Points(again), directory)
    assert str(error.value) == f"--resume runs/x: {said}"


def test_a_sweep_goes_on_with_the_plans_runs_whatever_its_record_says_of_them() -> None:
    directory = SweepDirectory(Path("runs/x"))
    record = new_record(directory, chosen(), Points(chosen()), None)
    ended = replace(record.points[0], outcome="completed", verdict="passed")
    changed = replace(ended, seed=99, values={"workload.rate": "1/s"}, repetition=7)
    assert continued(record.with_point(changed), chosen(), directory).points[0] == ended
    others = replace(record, points=(replace(record.points[0], name="precious"), *record.points[1:]))
    for listed in (others, replace(record, points=record.points[1:])):
        with pytest.raises(InputError, match="it lists other runs"):
            continued(listed, chosen(), directory)


def test_what_ended_is_not_run_again_but_what_crashed_is():
    record = new_record(SweepDirectory(Path("runs/x")), chosen(), Points(chosen()), None)
    first, second, *_ = record.points
    record = record.with_point(replace(first, outcome="completed", verdict="failed"))
    record = record.with_point(replace(second, outcome="crashed"))
    assert [point.name for point in pending(record)] == [
        "2-driver-2-r0",
        "1-driver-1-r1",
        "2-driver-2-r1",
    ]
    assert not all_passed(record)


def test_all_passed_only_if_every_run_did():
    record = new_record(SweepDirectory(Path("runs/x")), chosen(), Points(chosen()), None)
    for point in record.points:
        assert not all_passed(record)
        record = record.with_point(replace(point, outcome="completed", verdict="passed"))
    assert all_passed(record)


def test_the_headline_is_the_slowest_clients_rate_where_it_is_known():
    summary = {"throughput": {"events_per_s": 9.0}, "latency": {"p99_ms": 5.0}, "events": {"lost": 0}}
    assert headline(summary) == {"events_per_s": 9.0, "latency_p99_ms": 5.0, "lost": 0}
    summary["throughput"]["slowest_client_events_per_s"] = 4.0
    assert headline(summary)["events_per_s"] == 4.0
    assert headline({}) == {"events_per_s": None, "latency_p99_ms": None, "lost": None}
