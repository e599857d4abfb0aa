"""Sentences about connections during a cut, and the usual rate of a system."""

import pytest

from analysis.pages.systems.charts import longer_bins, usual_rate
from analysis.pages.systems.cut_story import sentences
from analysis.pages.systems.sides import RegionCut

CUT = RegionCut("cut", "r2-r3", ("r2", "r3"), 10.0, 30.0)


def row(*, is_open=True, tries=0, last=None, through=None, ended=None):
    """Return a row of TCP_OUTAGES; times in seconds since time 0."""
    how = None if ended is None else "RST"
    return {"link": "r2-r3", "from_s": 10.0, "to_s": 30.0, "port": 1883, "open": is_open, "tries": tries,
            "last_try_s": last, "through_s": through, "ended_s": ended, "ended_how": how}  # fmt: skip


def told(*rows):
    """With plain spaces."""
    return tuple(text.replace("\N{NO-BREAK SPACE}", " ") for text in sentences(rows, CUT))


def test_one_that_stays_open_goes_on_when_tcp_tries_next():
    assert told(row(tries=4, last=22.0, through=35.1)) == (
        "1 connection between r2 and r3 was open when the link was cut, to port 1883.",
        "No new connection was tried over the cut link while it was down.",
        "It stayed open: TCP sent up to 4 segments in vain, last 12.00 s after the cut;"
        " data arrived 5.10 s after the link was restored.",
    )


def test_some_are_given_up_and_opened_again_and_others_never_speak_again():
    assert told(
        row(ended=14.0),
        row(ended=15.5),
        row(tries=2, last=10.4),
        row(through=31.0),
        row(is_open=False, tries=2, last=17.0),
        row(is_open=False, tries=1, last=18.0),
        row(is_open=False, through=30.6),
    ) == (
        "4 connections between r2 and r3 were open when the link was cut, to port 1883.",
        "2 of them were closed 4.00 s\N{EN DASH}5.50 s after the cut (by RST).",
        "New connections were tried 3 times while the link was down, last 8.00 s after the cut.",
        "2 of them stayed open: TCP sent up to 2 segments in vain, last 0.40 s after the cut;"
        " data arrived 1.00 s after the link was restored (1 never).",
        "1 new connection came through 0.60 s after the link was restored.",
    )


def test_without_connections_there_is_no_story():
    assert told() == ()
    assert told(row(is_open=False, tries=1, last=12.0))[0] == (
        "No connection between r2 and r3 was open when the link was cut."
    )


@pytest.mark.parametrize(
    ("rates", "usual"),
    [
        ([100.0] * 10, 100.0),
        ([100.0] * 3 + [0.0] * 30, 100.0),  # cut off for most of the run
        ([100.0] * 30 + [0.0] * 10 + [2_000.0] * 2, 100.0),  # what was held back comes at once
        ([0.0] * 5, 1.0),
        ([], 1.0),
    ],
)
def test_the_usual_rate_ignores_empty_bins(rates, usual):
    assert usual_rate(rates) == usual


def test_bins_of_a_slow_system_are_merged():
    points = {0.125: 4.0, 0.375: 8.0, 0.625: 4.0, 0.875: 4.0, 1.125: 8.0}
    assert longer_bins(points, 1) == points
    assert longer_bins(points, 2) == {0.25: 6.0, 0.75: 4.0}
    assert longer_bins({}, 4) == {}
