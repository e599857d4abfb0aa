"""The promises of docs/nightly.md, on simulated nights with realistic noise: 100 quiet nights raise
hardly an alarm, and changes of 5 %, 10 % and 30 % are found as soon as it says.
"""

import bisect
from pathlib import Path

import pytest

from analysis.history.regressions.checking import check, check_night
from analysis.history.regressions.findings import NightFindings
from tests.analysis.history.year import Planted, entries, make_year, night_of

QUIET, BEFORE = 100, 40
NIGHTS = 260
CUT, FAST, CRASH, LOADED, FANOUT = entries(5)
RATE, P50 = "throughput.events_per_s", "latency.p50_ms"
PROMISED = (
    (FAST, RATE, -0.30, 2), (CUT, RATE, -0.10, 2), (CRASH, RATE, -0.05, 3),
    (FANOUT, P50, 0.30, 2), (LOADED, P50, 0.10, 2), (FAST, P50, 0.05, 6),
    (CUT, "recovery.cut.switch_s", 0.30, 5),
    (CRASH, "recovery.crash.switch_s", 0.10, 19),
    (CUT, "recovery.restore.switch_s", 0.05, 150),
)  # fmt: skip
"""Entry, metric, change, and on which night of it the check has found it."""


@pytest.mark.slow
def test_a_hundred_quiet_nights_raise_at_most_one_alarm(tmp_path: Path) -> None:
    history = make_year(tmp_path, nights=BEFORE + QUIET, experiments=1, seed=9)
    tables = history.runs(), history.metrics(), history.expectations()
    dates = [table["night"].to_pylist() for table in tables]
    alarms = set()
    for number in range(BEFORE, BEFORE + QUIET):
        night = night_of(number)
        runs, metrics, kept = (
            table.slice(0, bisect.bisect_right(nights, night))
            for table, nights in zip(tables, dates, strict=True)
        )
        found = check(runs, metrics, kept, night).findings
        alarms |= {(each.entry, each.metric, each.first_bad_night) for each in found}
    assert len(alarms) <= 1


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> NightFindings:
    """Check a night on which each change has its largest age at detection."""
    planted = [Planted(entry, metric, NIGHTS - within, change) for entry, metric, change, within in PROMISED]
    folder = tmp_path_factory.mktemp("promised")
    history = make_year(folder, nights=NIGHTS, experiments=5, planted=planted)
    return check_night(history, night_of(NIGHTS - 1))


@pytest.mark.parametrize(
    ("entry", "metric", "change", "within"), PROMISED, ids=[f"{each[1]} {each[2]:+.0%}" for each in PROMISED]
)
@pytest.mark.slow
def test_a_change_is_found_within_as_many_nights_as_promised(
    checked: NightFindings, entry: str, metric: str, change: float, within: int
) -> None:
    (found,) = (each for each in checked.findings if (each.entry, each.metric) == (entry, metric))
    assert found.direction == "worse"
    assert found.change == pytest.approx(change, abs=0.04)
    assert found.earliest_night <= night_of(NIGHTS - within) <= found.latest_night


def test_no_other_findings_are_reported(checked: NightFindings) -> None:
    assert len(checked.findings) == len(PROMISED)
