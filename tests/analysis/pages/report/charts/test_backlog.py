"""The arithmetic of catching up, against a run whose rate, gap and headroom are known."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.pages.report.charts.backlog import backlogs, explanation
from analysis.pages.report.run_reader import read_record
from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.report_scenario import Scenario
from tests.analysis.pages.report.synthetic_run import write_run

Made = Callable[[str], RunDirectory]


def test_backlog_headroom_and_overshoot_follow_from_each_other(made: Made) -> None:
    found = {b.stream: b for b in backlogs(read_record(made("narrow")))}
    assert set(found) == {2, 3}
    b = found[2]
    assert (b.region, b.gap_s, b.counted) == ("r3", pytest.approx(0.98), 19_600)
    assert b.rate == pytest.approx(20_000, rel=0.01)
    assert b.expected == pytest.approx(19_600, rel=0.01)
    assert b.came_in_s == pytest.approx(19_600 / 24_000)
    assert b.headroom == pytest.approx(4_000, rel=0.03)
    assert b.overshoot_s == pytest.approx(19_600 / 4_000, rel=0.03)
    assert not b.bounded


def test_a_catch_up_as_short_as_the_new_way_only_bounds_the_headroom(tmp_path: Path) -> None:
    record = read_record(write_run(tmp_path, Scenario(headroom_per_s=5e6)))
    b = backlogs(record)[0]
    assert b.bounded
    assert b.headroom is not None
    assert b.headroom < 5e6
    assert "a headroom of at least" in " ".join(explanation(record, (b,)))


def test_the_new_ways_link_says_what_it_would_have_allowed(made: Made) -> None:
    way = next(b for b in backlogs(read_record(made("narrow"))) if b.stream == 2).way
    assert way.last_link == "r0→r3"
    assert way.delay_s == pytest.approx(0.085)
    assert way.headroom == pytest.approx(4_500_000 / 8 / 12.5 - 2 * 20_000, rel=0.02)


def test_the_backlog_text_says_whether_the_link_was_the_limit(made: Made) -> None:
    narrow, wide = (read_record(made(name)) for name in ("narrow", "passed"))
    assert "The new path's rate sets the pace" in " ".join(explanation(narrow, backlogs(narrow)))
    assert "Links did not set the pace" in " ".join(explanation(wide, backlogs(wide)))


def test_without_links_captured_the_rest_is_still_told(made: Made) -> None:
    record = read_record(made("uncaptured"))
    b = backlogs(record)[0]
    assert b.headroom == pytest.approx(30_000, rel=0.01)
    assert b.way.headroom is None
    assert explanation(record, backlogs(record))


def test_without_faults_or_a_measured_catch_up_nothing_is_claimed(made: Made) -> None:
    record = read_record(made("passed"))
    open_ended = replace(record, recovery=tuple({**row, "catch_up_s": None} for row in record.recovery))
    assert backlogs(open_ended)[0].headroom is None
    assert explanation(open_ended, backlogs(open_ended)) == ()
    assert backlogs(read_record(made("undisturbed"))) == ()
