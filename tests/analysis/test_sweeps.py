"""A sweep is read with the plan and results of each run, and its repetitions are combined."""

import json
from pathlib import Path

import pytest

from analysis.sweeps import grouped, read_sweep, repetition_spread
from analysis.systems.sprinkler.figures import rates
from experiments.campaigns.sweepdir import SweepDirectory
from tests.analysis.pages.report import synthetic_sweep
from topologies.errors import InputError


@pytest.fixture(scope="module")
def throughput(tmp_path_factory: pytest.TempPathFactory) -> SweepDirectory:
    return synthetic_sweep.throughput(tmp_path_factory.mktemp("sweep") / "throughput")


def test_repetitions_give_mean_minimum_and_maximum() -> None:
    found = repetition_spread([3.0, None, 1.0, 2.0])
    assert found is not None
    assert (found.mean, found.low, found.high, found.count) == (2.0, 1.0, 3.0, 3)
    assert repetition_spread([None]) is None


def test_runs_of_a_combination_are_grouped(throughput: SweepDirectory) -> None:
    sweep = read_sweep(throughput)
    assert sweep.axes == ("topology", "roles.driver")
    assert len(sweep.measured) == 75
    found = grouped(
        sweep.measured, lambda run: (len(run.regions), run.drivers), lambda run: run.throughput_per_s
    )
    assert len(found) == 15
    assert {each.count for each in found.values()} == {5}
    assert found[3, 18].low < found[3, 18].mean < found[3, 18].high


def test_events_before_settling_and_after_the_drivers_stop_do_not_count(tmp_path: Path) -> None:
    run = read_sweep(synthetic_sweep.latency_load(tmp_path / "load")).runs[0]
    assert run.offered_per_s == 3 * 144_000
    assert run.settled_per_s == pytest.approx(432_000)
    assert run.latency_ms["r1"] == pytest.approx(run.latency_ms["r0"] + 12)


def test_a_client_without_events_has_throughput_0_and_a_run_may_have_no_latency(tmp_path: Path) -> None:
    directory = synthetic_sweep.latency_load(tmp_path / "load")
    point = next(iter(read_sweep(directory).runs)).directory
    summary = json.loads(point.summary_json.read_text())
    summary["throughput"]["slowest_client_events_per_s"] = 0.0
    point.summary_json.write_text(json.dumps(summary))
    point.table("latency").unlink()
    run = read_sweep(directory).runs[0]
    assert run.throughput_per_s == 0
    expected = "slowest client 0\N{NO-BREAK SPACE}events/s; no event after 300 ms reached all clients"
    assert expected in rates(run)


def test_missing_runs_are_listed_but_not_measured(tmp_path: Path) -> None:
    sweep = read_sweep(synthetic_sweep.nemesis(tmp_path / "nemesis"))
    assert len(sweep.runs) == 40
    assert len(sweep.measured) == 39
    assert sweep.runs[-1].throughput_per_s is None


def test_a_damaged_run_is_not_measured(tmp_path: Path) -> None:
    directory = synthetic_sweep.generic(tmp_path / "sizes")
    first = next(directory.points.iterdir())
    (first / "summary.json").write_text('{"verdict": "pas')
    assert len(read_sweep(directory).measured) == 11


def test_directories_other_than_sweeps_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"sweep\.json"):
        read_sweep(SweepDirectory(tmp_path))
