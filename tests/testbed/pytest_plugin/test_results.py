"""Figures of runs: a value for each run, and what was not measured."""

import pytest

from testbed.campaign.sweeps.made_runs import MadeRun
from testbed.pytest_plugin.results import NotMeasuredError, RunResults
from tests.testbed.pytest_plugin.made import made, switched, unsummarised


def results(*runs: MadeRun) -> RunResults:
    return RunResults(runs, lambda _: None)


def test_a_figure_has_a_value_for_each_run():
    assert results(*switched(3.0, 1.0))["recovery.cut.switch_s"] == (3.0, 1.0)
    run = results(made(streams={"r0.1": {"lost": 3}}))
    assert run["streams.r0.1.lost"] == (3,)
    assert run["verdict"] == ("passed",)


@pytest.mark.parametrize("run", [switched(0.5, None)[1], unsummarised()])
def test_a_figure_that_a_run_lacks_fails_the_test(run):
    with pytest.raises(NotMeasuredError, match=r"^latency\.mean_ms was not measured in "):
        results(made(), run)["latency.mean_ms"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("latncy.p99_ms", "summary.json has no latncy: did you mean latency?"),
        ("latency.p9_ms", "latency has no p9_ms: did you mean p99_ms?"),
        ("recovery.cut.switch_s", "no fault is named 'cut'"),
    ],
)
def test_a_mistyped_name_is_no_missing_value(path, said):
    with pytest.raises(KeyError) as raised:
        results(made(recovery={}))[path]
    assert said in str(raised.value)


def test_access_to_a_figure_is_recorded():
    seen: list[RunResults] = []
    run = RunResults((made(),), seen.append)
    assert run["events.lost"] == (0,)
    assert seen == [run]
