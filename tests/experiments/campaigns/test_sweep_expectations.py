"""Expectations of a sweep: parsing, and evaluation on the results of its runs."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.campaigns.sweep_expectations import STATISTICS, GroupJudgement, Result, SweepExpectation
from experiments.loader import load_experiment, read_experiment
from tests.refusals import refusal

SWEPT = """
name: swept
topology: two-regions
system: sprinkler
roles: {proxy: 1, driver: 1, client: 2}
workload: {event_size: 10B, rate: 1000/s}
duration: 30s
sweep:
  parameters.fanout: [2, 4, 8]
  parameters.shuffle_time: [30ms, 100ms]
expect_sweep:
  - argmin(parameters.fanout, median(latency.mean_ms)) == 4
""".lstrip()


def result(fanout: int, shuffle_time: str, mean_ms: float | None, lost: int = 0) -> Result:
    values = {"parameters.fanout": fanout, "parameters.shuffle_time": shuffle_time}
    return Result(values, {"latency": {"mean_ms": mean_ms}, "events": {"lost": lost}})


RESULTS = [
    result(2, "30ms", 30.0), result(2, "30ms", 50.0), result(2, "100ms", 60.0),
    result(4, "30ms", 20.0), result(4, "30ms", 22.0), result(4, "100ms", 25.0),
    result(8, "30ms", 40.0), result(8, "30ms", 41.0), result(8, "100ms", 24.0),
]  # fmt: skip


def judged(text: str, results: list[Result] = RESULTS) -> tuple[object, bool]:
    found = SweepExpectation.parse(text).evaluate(results)
    return found.value, found.held


@pytest.mark.parametrize(
    ("text", "value", "held"),
    [
        ("median(latency.mean_ms) <= 30", 30.0, True),
        ("median(latency.mean_ms) < 30", 30.0, False),
        ("max(latency.mean_ms where parameters.fanout=4) <= 25", 25.0, True),
        ("max(latency.mean_ms where parameters.fanout=4 and parameters.shuffle_time = 30ms)==22", 22.0, True),
        ("min(latency.mean_ms) by parameters.fanout <= 30", 30.0, True),
        ("min(latency.mean_ms) by parameters.fanout <= 24", 30.0, False),
        ("mean(latency.mean_ms) by parameters.fanout, parameters.shuffle_time >= 21", 21.0, True),
        ("argmin(parameters.fanout, mean(latency.mean_ms)) == 4", "4", True),
        ("argmax(parameters.fanout, max(latency.mean_ms)) == 2", "2", True),
        ("argmin(parameters.shuffle_time, median(latency.mean_ms)) == 100ms", "100ms", True),
        ("argmin(parameters.fanout, median(latency.mean_ms)) by parameters.shuffle_time == 4", "8", False),
        ("median(latency.mean_ms where parameters.fanout=4) / "
         "median(latency.mean_ms where parameters.fanout=2) <= 0.44", 0.44, True),
        ("sum(events.lost) == 0", 0.0, True),
        ("p90(latency.mean_ms)<=60", 60.0, True),
    ],
)  # fmt: skip
def test_statistics_of_runs_are_compared(text, value, held):
    assert judged(text) == (value, held)


def test_a_figure_missing_in_a_run_is_unknown_and_never_holds():
    broken = [*RESULTS, result(4, "30ms", None)]
    assert judged("median(latency.mean_ms) <= 1000", broken) == (None, False)
    assert judged("median(latency.mean_ms) >= 0", broken) == (None, False)
    assert judged("argmin(parameters.fanout, median(latency.mean_ms)) == 4", broken) == (None, False)
    assert judged("median(latency.mean_ms where parameters.fanout=8) <= 41", broken) == (40.0, True)
    assert judged("median(latency.mean_ms) by parameters.fanout <= 1000", broken) == (None, False)
    assert judged("median(latency.mean_ms) <= 30", []) == (None, False)


def test_argmin_names_all_tied_values():
    tied = [result(2, "30ms", 1.0), result(4, "30ms", 1.0), result(8, "30ms", 2.0)]
    assert judged("argmin(parameters.fanout, median(latency.mean_ms)) == 2", tied) == ("2 and 4", False)


def test_each_group_is_reported():
    found = SweepExpectation.parse("max(latency.mean_ms) by parameters.fanout <= 50").evaluate(RESULTS)
    assert found.groups == (
        GroupJudgement(60.0, False, "parameters.fanout=2"),
        GroupJudgement(25.0, True, "parameters.fanout=4"),
        GroupJudgement(41.0, True, "parameters.fanout=8"),
    )


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_every_statistic_but_the_sum_is_within_the_measured_range(values):
    for name, statistic in STATISTICS.items():
        if name != "sum":
            assert min(values) - 1e-6 <= statistic(values) <= max(values) + 1e-6


@pytest.mark.parametrize(
    "text",
    [
        "median(latency.mean_ms)<=20",
        "median(latency.mean_ms where a.b=30ms and c=x/y.yaml) / max(latency.p99_ms) by topology, c >= 1.5",
        "argmax(topology, p95(throughput.events_per_s)) by a.b != ring-6",
    ],
)
def test_expectations_read_back(text):
    expectation = SweepExpectation.parse(text)
    assert SweepExpectation.parse(expectation.text) == expectation


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ("latency.mean_ms <= 2", "'latency.mean_ms <= 2' is not a comparison such as: median("),
        ("medium(latency.mean_ms) <= 2", "there is no statistic medium: did you mean median?"),
        ("median(latency.mean_ms) <= 2ms", "2ms is not a number; its unit is in the path"),
        ("median(latency.meen_ms) <= 2", "latency has no meen_ms: did you mean mean_ms?"),
        ("median(latency.mean_ms) by parameters.fanuot <= 2",
         "the sweep does not try values for parameters.fanuot: did you mean parameters.fanout?"),
        ("median(latency.mean_ms where parameters.fanout=5) <= 2",
         "the sweep does not try parameters.fanout=5: it tries 2, 4, 8"),
        ("argmin(parameters.fanout, median(latency.mean_ms)) <= 4",
         "argmin gives a swept value: compare it with == or !="),
        ("median(recovery.cut.switch_s) <= 4", "no fault is named 'cut'"),
        ("median(latency.mean_ms) <= nan", "nan is not a number; its unit is in the path"),
    ],
)  # fmt: skip
def test_errors_name_file_line_and_field(tmp_path: Path, monkeypatch, expected, said):
    monkeypatch.chdir(tmp_path)
    Path("swept.yaml").write_text(
        SWEPT.replace("argmin(parameters.fanout, median(latency.mean_ms)) == 4", expected)
    )
    assert refusal(load_experiment, "swept.yaml").startswith(f"swept.yaml:11: expect_sweep.0: {said}")


def test_sweep_expectations_do_not_apply_to_a_single_run(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("swept.yaml").write_text(SWEPT)
    file = read_experiment("swept.yaml")
    assert file.experiment.expect_sweep
    assert file.point({"parameters.fanout": 2}).expect_sweep == ()
    assert load_experiment("swept.yaml", ["sweep=null"]).sweep == {}
