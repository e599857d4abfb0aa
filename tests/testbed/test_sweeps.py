"""The runs of a sweep, and when an interrupted sweep may continue."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.campaigns.campaign import RunState
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.loader import read_experiment
from testbed import sweeps
from testbed.run_selection import RunSelection
from testbed.sweeps import Points, new_record, record_to_resume
from topologies.errors import InputError

DIRECTORY = SweepDirectory(Path("runs/x"))
SWEPT = ["sweep={roles.driver: [1, 2]}", "repeat=2"]


def chosen(*overrides: str, seed: int | None = None, repeat: int | None = None) -> RunSelection:
    file = read_experiment("link-failure", [*SWEPT, *overrides])
    return RunSelection.from_options(file, backend=None, links="auto", seed=seed, repeat=repeat)


def test_too_many_runs_are_refused_before_they_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Request a thousand repetitions of 10,000 combinations, ten million runs in memory."""
    monkeypatch.setattr(sweeps, "runs", lambda *_: pytest.fail("all are listed"))
    sizes = ", ".join(f"{n}B" for n in range(10, 20))
    rates = ", ".join(f"{n}/s" for n in range(1, 101))
    swept = f"sweep={{workload.event_size: [{sizes}], workload.rate: [{rates}]}}"
    file = read_experiment("link-failure", [swept, "repeat=20"])
    with pytest.raises(InputError) as error:
        RunSelection.from_options(file, backend=None, links="auto", seed=None, repeat=1000)
    assert str(error.value) == "--repeat: makes 1,000,000 runs, more than 20,000"
    with pytest.raises(InputError, match="makes 21,000 runs, more than 20,000"):
        read_experiment("link-failure", [swept, "repeat=21"])


@pytest.mark.parametrize(
    ("again", "said"),
    [
        (chosen(seed=4), "the sweep began with --seed 1, not 4"),
        (chosen(repeat=3), "the sweep began with --repeat 2, not 3"),
        (chosen("workload.rate=5/s"), "cannot continue: link-failure or its topology has changed"),
        (chosen("name=other"), "cannot continue: it is a sweep of link-failure"),
    ],
)
def test_a_changed_sweep_is_refused(again: RunSelection, said: str) -> None:
    record = new_record(DIRECTORY, Points(chosen()), None)
    record_to_resume(record, Points(chosen()), DIRECTORY)
    with pytest.raises(InputError) as error:
        record_to_resume(record, Points(again), DIRECTORY)
    assert str(error.value) == f"--resume runs/x: {said}"


def test_a_sweep_resumes_with_the_plans_runs_whatever_its_record_contains() -> None:
    record = new_record(DIRECTORY, Points(chosen()), None)
    ended = replace(record.runs[0], state=RunState.DONE, verdict="passed")
    changed = replace(ended, seed=99, values={"workload.rate": "1/s"}, repetition=7)
    assert record_to_resume(record.with_run(changed), Points(chosen()), DIRECTORY).runs[0] == ended
    others = replace(record, runs=(replace(record.runs[0], name="precious"), *record.runs[1:]))
    for listed in (others, replace(record, runs=record.runs[1:])):
        with pytest.raises(InputError, match="it lists other runs"):
            record_to_resume(listed, Points(chosen()), DIRECTORY)


def test_a_sweep_resumes_on_the_requested_backend_whatever_its_record_contains() -> None:
    """Forge the record: its digest is no protection, because its author can compute it."""
    record = new_record(DIRECTORY, Points(chosen()), None)
    led_away = replace(record, backend="runs/x/points/lab.yaml", links="relay", seed=7, experiment={})
    assert record_to_resume(led_away, Points(chosen()), DIRECTORY) == record


def test_completed_runs_are_not_repeated_but_crashed_ones_are():
    record = new_record(DIRECTORY, Points(chosen()), None)
    first, second, *_ = record.runs
    record = record.with_run(replace(first, state=RunState.DONE, verdict="failed"))
    record = record.with_run(replace(second, state=RunState.FAILED, problem="the sandbox ended"))
    again = record_to_resume(record, Points(chosen()), DIRECTORY)
    assert [run.name for run in again.pending] == ["2-driver-2-r0", "1-driver-1-r1", "2-driver-2-r1"]
    assert again.pending[0].problem is None
    assert not record.passed


def test_a_sweep_in_another_order_is_refused_with_that_reason() -> None:
    axes = [("roles.driver", "[1, 2]"), ("workload.rate", "[5/s, 6/s]")]
    one, other = (f"sweep={{{', '.join(f'{k}: {v}' for k, v in order)}}}" for order in (axes, axes[::-1]))
    record = new_record(DIRECTORY, Points(chosen(one)), None)
    with pytest.raises(InputError, match="lists its variants or values in another order than when it began"):
        record_to_resume(record, Points(chosen(other)), DIRECTORY)
