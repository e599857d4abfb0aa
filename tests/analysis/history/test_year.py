"""The simulated year is a history like any other, comes from its seed, and has what was planted in it."""

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from analysis.history import History, HistoryFilter
from tests.analysis.history.year import Planted, entries, make_year, metrics_of, night_of

pytestmark = pytest.mark.slow

P95 = "latency.p95_ms"
ENTRY = entries()[0]


def values(history: History, metric: str, where: HistoryFilter) -> np.ndarray:
    rows = history.metrics(where)
    return rows.filter(pc.equal(rows["metric"], metric))["value"].to_numpy()


def test_every_experiment_runs_every_night_and_some_runs_are_bad(tmp_path: Path) -> None:
    history = make_year(tmp_path, nights=28, experiments=4)
    runs = history.runs().to_pandas()
    assert history.problems == []
    assert runs.groupby("night")["entry"].nunique().eq(4).all()
    assert len(runs) == 4 * (24 * 3 + 4 * 5)  # more on Sundays
    assert set(runs["verdict"]) >= {"passed", "invalid", "crashed"}
    crashed = set(runs.loc[runs["verdict"] == "crashed", "run"])
    assert not crashed & set(history.metrics()["run"].to_pylist())
    assert set(history.metrics(HistoryFilter(entry=ENTRY))["metric"].to_pylist()) == set(metrics_of(ENTRY))


def test_the_same_seed_gives_the_same_year(tmp_path: Path) -> None:
    years = [make_year(tmp_path / name, nights=5, experiments=2, seed=seed) for name, seed in
             (("a", 1), ("b", 1), ("c", 2))]  # fmt: skip
    first, again, other = (year.metrics().drop_columns(["schema"]) for year in years)
    assert first.equals(again)
    assert not first.equals(other)


def test_a_planted_change_begins_on_its_night_and_changes_nothing_else(tmp_path: Path) -> None:
    planted = [Planted(ENTRY, P95, 20, 0.3), Planted(ENTRY, "events.lost", 20, 2.0, until=21)]
    quiet = make_year(tmp_path / "quiet", nights=40, experiments=2)
    worse = make_year(tmp_path / "worse", nights=40, experiments=2, planted=planted)
    before, after = (
        HistoryFilter(entry=ENTRY, until=night_of(19)),
        HistoryFilter(entry=ENTRY, since=night_of(20)),
    )
    assert np.array_equal(values(worse, P95, before), values(quiet, P95, before))
    assert np.allclose(values(worse, P95, after), values(quiet, P95, after) * 1.3)
    lost = values(worse, "events.lost", HistoryFilter(entry=ENTRY, since=night_of(20), until=night_of(20)))
    assert set(lost) == {2.0}
    assert set(values(worse, "events.lost", HistoryFilter(entry=ENTRY, since=night_of(21)))) == {0.0}
    others = HistoryFilter(entry=entries()[1])
    assert np.array_equal(values(worse, P95, others), values(quiet, P95, others))


def test_a_flaky_expectation_fails_now_and_then(tmp_path: Path) -> None:
    history = make_year(tmp_path, nights=60, experiments=1, flaky={ENTRY: 0.2})
    kept = history.expectations().to_pandas()
    rates = 1 - kept.groupby("text")["held"].mean()
    assert 0.1 < rates["agreement.compared > 0"] < 0.3
    assert rates["events.lost == 0"] == 0
