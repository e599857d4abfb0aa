"""The check of a night finds exactly the planted changes, with their commits and runs."""

from pathlib import Path

import pytest

from analysis.errors import AnalysisError
from analysis.history import History
from analysis.history.regressions.checking import check_night
from analysis.history.regressions.findings import NightFindings, RegressionFinding
from analysis.history.regressions.series import series_of
from experiments.campaigns.campaign import FailureKind
from tests.analysis.history.regressions.replay import replayed
from tests.analysis.history.year import Planted, entries, make_year, night_of

NIGHTS = 120
LAST = night_of(NIGHTS - 1)
CUT, FAST, CRASH, LOADED, FANOUT = entries(5)
SWITCH, P50, RATE, LOST = (
    "recovery.cut.switch_s", "latency.p50_ms", "throughput.events_per_s", "events.lost",
)  # fmt: skip
PLANTED = (
    Planted(CUT, SWITCH, 100, 0.30),
    Planted(LOADED, P50, 90, 0.10),
    Planted(FAST, RATE, 80, -0.05),
    Planted(FANOUT, RATE, NIGHTS - 1, -0.30),
    Planted(CRASH, LOST, NIGHTS - 1, 2.0),
)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> History:
    folder = tmp_path_factory.mktemp("history")
    return make_year(folder, nights=NIGHTS, experiments=5, seed=6, planted=PLANTED, flaky={LOADED: 0.1})


@pytest.fixture(scope="module")
def checked(planted: History) -> NightFindings:
    return check_night(planted, LAST)


def finding_of(found: tuple[RegressionFinding, ...], entry: str, metric: str) -> RegressionFinding:
    (only,) = (each for each in found if (each.entry, each.metric) == (entry, metric))
    return only


@pytest.mark.slow
def test_all_planted_changes_are_found_and_no_others(checked: NightFindings) -> None:
    found = checked.findings
    assert {(each.entry, each.metric) for each in found} == {(each.entry, each.metric) for each in PLANTED}
    assert {each.direction for each in found} == {"worse"}


@pytest.mark.parametrize("change", PLANTED[:3], ids=lambda each: each.metric)
def test_a_finding_has_its_start_and_size(checked: NightFindings, change: Planted) -> None:
    found = finding_of(checked.findings, change.entry, change.metric)
    assert found.kind == "change point"
    assert found.earliest_night <= night_of(change.night) <= found.latest_night
    assert found.earliest_night <= found.first_bad_night <= found.latest_night
    assert found.last_good_night < found.first_bad_night
    assert found.change == pytest.approx(change.change, abs=0.02)
    assert found.interval is not None
    assert found.interval[0] <= found.change <= found.interval[1]
    assert found.interval[0] - 0.01 <= change.change <= found.interval[1] + 0.01
    assert found.confidence > 0.95
    assert not found.new  # a check of the nights before knew of it


def test_a_large_deviation_tonight_fails_the_night(checked: NightFindings) -> None:
    assert {(each.entry, each.kind) for each in checked.worse} == {(FANOUT, "tonight"), (CRASH, "tonight")}
    rate = finding_of(checked.findings, FANOUT, RATE)
    assert rate.change == pytest.approx(-0.3, abs=0.03)
    assert rate.first_bad_night == LAST
    lost = finding_of(checked.findings, CRASH, LOST)
    assert (lost.before, lost.after, lost.change, lost.interval) == (0.0, 2.0, None, None)


def test_findings_are_sorted_by_urgency(checked: NightFindings) -> None:
    found = checked.findings
    assert [each.new for each in found] == [True, True, False, False, False]
    assert [each.entry for each in found] == [CRASH, FANOUT, CUT, LOADED, FAST]


@pytest.mark.slow
def test_a_change_point_is_new_on_the_first_night_that_detects_it(planted: History) -> None:
    series = [each for each in series_of(planted.runs(), planted.metrics()) if each.metric == P50]
    known = [
        [each.new for each in found if each.kind == "change point"]
        for _, found in replayed(series, planted.runs(), [night_of(number) for number in range(88, 108)])
    ]
    flat = [new for night in known for new in night]
    assert flat[0]
    assert sum(flat) == 1
    assert len(flat) > 10


@pytest.mark.slow
def test_nights_on_a_known_new_level_are_not_reported(planted: History) -> None:
    found = check_night(planted, night_of(108)).findings
    assert finding_of(found, CUT, SWITCH).kind == "change point"


def test_verdicts_are_of_tonight(checked: NightFindings) -> None:
    assert [each.entry for each in checked.verdicts] == [CUT, FAST, CRASH, LOADED, FANOUT]
    crash = checked.verdicts[2]
    assert {run.verdict for run in crash.runs} == {"failed"}
    assert {run.failure for run in crash.runs} == {FailureKind.EXPECTATION}
    assert {run.why for run in crash.runs} == {"events.lost == 0"}
    assert crash.last_good_night is not None
    assert crash.last_good_night < LAST
    assert len(crash.last_good_runs) >= 1


def test_a_night_without_history_finds_nothing(tmp_path: Path) -> None:
    assert check_night(History(tmp_path), "2026-03-14").findings == ()
    history = make_year(tmp_path, nights=1, experiments=1)
    assert check_night(history, night_of(0)).findings == ()
    with pytest.raises(AnalysisError, match="is not a night"):
        check_night(history, "yesterday")
