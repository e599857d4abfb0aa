"""Figures of runs as attributes: statistics, comparisons, and what was not measured."""

from functools import reduce

import pytest

from testbed.campaign.sweeps.made_runs import MadeRun
from testbed.pytest_plugin.figures import NotMeasuredError
from testbed.pytest_plugin.results import RunResults
from tests.testbed.pytest_plugin.made import made, switched, unsummarised

INVALID = {"valid": False, "reasons": ["the processors were busy"], "links": []}


def results(*runs: MadeRun) -> RunResults:
    return RunResults(runs, lambda _: None)


def test_figures_of_several_runs_are_a_distribution():
    figure = results(*switched(3.0, 1.0, 2.0)).recovery.cut.switch_s
    assert figure.all == (3.0, 1.0, 2.0)
    assert (figure.min, figure.p50, figure.mean, figure.max) == (1.0, 2.0, 2.0, 3.0)
    assert (figure.p95, figure.p99) == (pytest.approx(2.9), pytest.approx(2.98))
    assert (len(figure), list(figure), figure[0]) == (3, [3.0, 1.0, 2.0], 3.0)


def test_one_run_has_a_value_and_the_same_statistics():
    run = results(made())
    assert run.latency.p99_ms.value == run.latency.p99_ms.p95 == float(run.latency.p99_ms) == 12.5
    assert run.latency.p99_ms == pytest.approx(12.4, abs=0.2)


def test_a_comparison_holds_if_it_holds_for_every_run():
    figure = results(*switched(1.0, 1.0, 2.0)).recovery.cut.switch_s
    assert figure <= 2
    assert figure > 0.5
    for unheld in (figure < 2, figure > 1, figure >= 1.5, figure == 1, figure != 1):
        assert unheld is False
    assert figure != 3
    assert results(*switched(1.0, 1.0)).recovery.cut.switch_s == 1


def test_nothing_that_was_not_measured_holds():
    figure = results(*switched(0.5, None)).recovery.cut.switch_s
    for unheld in (figure < 2, figure > 0, figure == 0.5, figure != 7, figure == None):  # noqa: E711
        assert unheld is False
    for statistic in ("p50", "p95", "mean", "max", "measured"):
        with pytest.raises(NotMeasuredError, match=r"^recovery\.cut\.switch_s was not measured in run-1$"):
            getattr(figure, statistic)
    assert figure.all == (0.5, None)


def test_a_stream_is_found_by_its_name_with_dots():
    run = results(made(streams={"r0.1": {"lost": 3}, "r1": {"lost": 0}}))
    assert run.streams["r0.1"].lost == 3
    assert run["streams.r1.lost"] == 0
    assert run.streams["r1.lost"] == 0


def test_recovery_has_the_figures_of_all_faults_that_have_them():
    run = results(made(), made())
    assert run.recovery.switch_s.all == (0.9, 0.1, 0.9, 0.1)
    assert run.recovery.returned_s.all == (0.4, 0.4)
    assert (run.recovery.switch_s < 0.9) is False


def test_items_of_lists_are_found_by_their_names_and_any_path_by_its_text():
    run = results(made())
    assert run.fidelity.links["r0-r1"].delay_p50_ms == 5.1
    assert run["fidelity.links.r0-r1.delay_p50_ms"] == 5.1
    assert run["recovery"]["cut"].switch_s == 0.9
    assert list(run.recovery) == ["cut", "restore"]
    with pytest.raises(KeyError, match="did you mean cut"):
        run["recovery.cutt.switch_s"]


def test_lists_of_words_and_truths_are_values():
    run = results(made(), made(fidelity=INVALID, verdict="invalid"))
    assert run.fidelity.reasons.all == ([], ["the processors were busy"])
    assert (run.problems == []) is True
    assert not run.fidelity.valid
    assert results(made()).fidelity.valid
    assert results(made()).verdict == "passed"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("latncy", r"the summary has no latncy: did you mean latency\?"),
        ("latency.p9_ms", r"latency has no p9_ms: did you mean p99_ms\?"),
        ("recovery.swich_s", "recovery has no swich_s"),
        ("events.zzzz", "events has no zzzz: known are lost, delivered"),
    ],
)
def test_a_mistyped_name_is_distinguished_from_the_known(path, said):
    with pytest.raises(AttributeError, match=f"^{said}"):
        reduce(getattr, path.split("."), results(made()))


def test_a_figure_shows_its_name_and_that_its_run_is_invalid():
    assert repr(results(*switched(0.98, None)).recovery.cut.switch_s) == (
        "<recovery.cut.switch_s: 0.98, not measured>"
    )
    invalid = results(made(), made(fidelity=INVALID, verdict="invalid"))
    assert repr(invalid.events.lost) == "<events.lost: 0, 0 (of an invalid run)>"
    assert repr(invalid) == "<tiny: passed, invalid>"
    assert (invalid.valid, invalid.passed) == (False, False)


def test_meaningless_comparisons_are_refused():
    run = results(*switched(1.0, 2.0))
    figure = run.recovery.cut.switch_s
    with pytest.raises(TypeError, match="are several"):
        float(figure)
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(figure)
    with pytest.raises(TypeError, match="compare with one value"):
        assert figure < figure
    with pytest.raises(TypeError, match="are not numbers"):
        assert run.verdict.p95


def test_without_an_analysis_there_are_no_figures():
    run = results(unsummarised())
    with pytest.raises(AttributeError, match=r"^there is no latency: <tiny: completed> has no summary$"):
        assert run.latency
    assert (run.valid, run.passed) == (False, False)


def test_access_to_a_figure_is_recorded():
    seen: list[RunResults] = []
    run = RunResults([made()], seen.append)
    assert run.passed
    assert seen == []
    assert run.events.lost == 0
    assert seen == [run]
