"""A figure that was always measured and no longer is, is a finding; an intermittent figure is not."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from analysis.history.regressions.checking import check
from analysis.history.regressions.findings import NightFindings, RegressionFinding
from analysis.pages.nights.change_words import size_of
from testbed.campaign.nights.night_end import finding_line
from tests.analysis.history.year import entries, make_year, night_of

SETTLED = "recovery.cut.settled_s"
NIGHTS = 60
CUT = entries()[0]
Tables = tuple[pa.Table, pa.Table, pa.Table]


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Sixty nights of three runs each, in which nothing changes."""
    history = make_year(
        tmp_path_factory.mktemp("missing"), NIGHTS, 1, sunday_repeats=3, invalid=0.0, crashed=0.0
    )
    return history.runs(), history.metrics(), history.expectations()


def without(year: Tables, lack: np.ndarray) -> Tables:
    """Remove the figure from these runs; `lack` is by night and repeat."""
    runs, metrics, expectations = year
    names = runs["run"].filter(pa.array(lack))
    gone = pc.and_(pc.equal(metrics["metric"], SETTLED), pc.is_in(metrics["run"], names.combine_chunks()))
    return runs, metrics.filter(pc.invert(gone)), expectations


def lacking(*nights: int, repeats: int = 3) -> np.ndarray:
    """Return which runs lack the figure, for the first `repeats` of these nights."""
    lack = np.zeros((NIGHTS, 3), bool)
    lack[list(nights), :repeats] = True
    return lack.ravel()


def findings(tables: Tables, night: int = NIGHTS - 1) -> tuple[RegressionFinding, ...]:
    return checked(tables, night).findings


def checked(tables: Tables, night: int = NIGHTS - 1) -> NightFindings:
    """Check a night with the data known then."""
    runs, metrics, expectations = (
        table.filter(pc.less_equal(table["night"], night_of(night))) for table in tables
    )
    return check(runs, metrics, expectations, night_of(night))


@pytest.mark.slow
def test_a_figure_missing_in_all_runs_of_tonight_fails_the_night(year: Tables) -> None:
    result = checked(without(year, lacking(59)))
    (found,) = result.worse
    assert (found.metric, found.direction, found.after, found.change) == (SETTLED, "worse", None, None)
    assert (found.first_bad_night, found.last_good_night, found.new) == (night_of(59), night_of(58), True)
    assert found.before == pytest.approx(1.2, rel=0.8)
    assert size_of(found) == "no longer measured"
    assert ", then not measured, since 2026-03-01" in finding_line(found)
    assert len(found.runs_after) == 3


def test_after_ten_nights_a_missing_figure_is_no_longer_new(year: Tables) -> None:
    result = checked(without(year, lacking(*range(50, 60))))
    (found,) = result.findings
    assert (found.metric, found.kind, found.new) == (SETTLED, "change point", False)
    assert (found.first_bad_night, found.last_good_night) == (night_of(50), night_of(49))
    assert result.worse == ()


def test_a_missing_figure_is_new_once_and_urgent_until_it_is_a_level(year: Tables) -> None:
    tables = without(year, lacking(*range(50, 60)))
    assert findings(tables, 49) == ()
    assert [findings(tables, night)[0].new for night in range(50, 56)] == [True, *[False] * 5]
    assert [len(checked(tables, night).worse) for night in range(50, 56)] == [1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    "lack",
    [
        lacking(59, repeats=2),  # one of tonight's has it
        lacking(*range(59), repeats=1) | lacking(59),  # of earlier nights some runs lack it
        lacking(*range(2, 60, 3)),  # a third of the nights
        lacking(*range(60)),  # it never was there
        lacking(*range(5, 60)),  # for too few nights to tell
    ],
    ids=["some have it", "some lack it", "comes and goes", "never was", "hardly was"],
)
def test_a_figure_that_was_often_missing_or_is_present_is_no_finding(year: Tables, lack: np.ndarray) -> None:
    assert findings(without(year, lack)) == ()


def test_invalid_runs_do_not_count_as_missing_figures(year: Tables) -> None:
    runs, metrics, expectations = without(year, lacking(59))
    valid = [night != night_of(59) for night in runs["night"].to_pylist()]
    runs = runs.set_column(runs.schema.get_field_index("valid"), "valid", pa.array(valid))
    assert findings((runs, metrics, expectations)) == ()


def test_single_runs_have_to_agree_on_three_nights(year: Tables) -> None:
    runs, metrics, expectations = without(year, lacking(57, 58, 59))
    first = runs.filter(pc.equal(runs["repeat"], 0))
    single = first, metrics.filter(pc.is_in(metrics["run"], first["run"].combine_chunks())), expectations
    assert [len(findings(single, night)) for night in (57, 58, 59)] == [0, 0, 1]
