"""Sentences about connections during a cut."""

import numpy as np
import pytest

from analysis.pages.systems.charts import longer_bins, usual_rate
from analysis.pages.systems.cut_story import sentences
from analysis.pages.systems.sides import RegionCut
from analysis.timelines.tcp_connections import CapturedHost, Ending, TcpConnection, TcpDirection

S = 10**9
ZERO_NS = 1_700_000_000 * S
HOSTS = [
    CapturedHost(f"{region}-broker-0", region, f"{region}-broker-0-eth0") for region in ("r1", "r2", "r3")
]
CUT = RegionCut("cut", ("r2", "r3"), 10.0, 30.0)


def at(seconds):
    return ZERO_NS + round(seconds * S)


def times(*seconds):
    return np.array([at(each) for each in seconds], np.int64)


def connection(a, b, tried_s, *, answered_s=None, ended_s=None, sent=(), arrived=()):
    """Return a connection in which all segments but the first are repetitions."""
    way = TcpDirection(times(*sent), np.arange(len(sent)) > 0, times(*arrived))
    return TcpConnection(
        client=f"{a}-broker-0",
        server=f"{b}-broker-0",
        port=1883,
        tries_ns=tuple(map(at, tried_s)),
        answered_ns=None if answered_s is None else at(answered_s),
        ending=None if ended_s is None else Ending(at(ended_s), f"{a}-broker-0", "RST"),
        ways=(way,),
    )


def told(*found, cut=CUT):
    """With plain spaces."""
    return tuple(text.replace("\N{NO-BREAK SPACE}", " ") for text in sentences(found, HOSTS, cut, ZERO_NS))


def test_one_that_stays_open_and_goes_on_when_tcp_tries_next():
    kept = connection("r2", "r3", [1], answered_s=1.1, sent=(10.1, 10.4, 11, 22, 35), arrived=(35.1,))
    assert told(kept) == (
        "1 connection between r2 and r3 was open when the link was cut, to port 1883.",
        "No new connection was tried over the cut link while it was down.",
        "It stayed open: TCP retransmitted up to 3 times, last 12.00 s after the cut;"
        " data arrived 5.10 s after the link was restored.",
    )


def test_those_that_are_given_up_and_opened_again_and_the_way_round():
    assert told(
        connection("r2", "r3", [1], answered_s=1.1, ended_s=14),
        connection("r3", "r2", [1], answered_s=1.1, ended_s=15.5),
        connection("r2", "r3", [16, 17]),
        connection("r2", "r3", [18]),
        connection("r2", "r1", [14.5], answered_s=14.6),
        connection("r2", "r3", [30.5], answered_s=30.6),
    ) == (
        "2 connections between r2 and r3 were open when the link was cut, to port 1883.",
        "Both were closed 4.00 s\N{EN DASH}5.50 s after the cut (by RST).",
        "New connections were tried 3 times while the link was down, from 6.00 s to 8.00 s after the cut.",
        "1 new connection to other regions opened while it was down (r2 to r1),"
        " the first 4.60 s after the cut.",
        "1 new connection between them opened 0.60 s after the link was restored.",
    )


def test_a_part_of_them_may_never_speak_again():
    kept = [
        connection("r2", "r3", [1], answered_s=1.1, sent=(10.1, 10.4), arrived=(31,)),
        connection("r3", "r2", [1], answered_s=1.1),
        connection("r3", "r2", [2], answered_s=2.1, ended_s=12),
    ]
    assert told(*kept)[1:] == (
        "One of them was closed 2.00 s after the cut (by RST).",
        "No new connection was tried over the cut link while it was down.",
        "2 of them stayed open: TCP retransmitted up to 1 time, last 0.40 s after the cut;"
        " data arrived 1.00 s after the link was restored (1 never).",
    )


def test_a_cut_for_good_and_no_connection_at_all():
    for_good = RegionCut("cut", ("r2", "r3"), 10.0, None)
    assert told(cut=for_good) == ("No connection between r2 and r3 was open when the link was cut.",)
    kept = connection("r2", "r3", [1], answered_s=1.1, sent=(10.1, 10.4))
    assert told(kept, cut=for_good)[-1] == (
        "It stayed open: TCP retransmitted up to 1 time, last 0.40 s after the cut."
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
def test_the_usual_rate_is_that_of_bins_in_which_anything_came(rates, usual):
    assert usual_rate(rates) == usual


def test_bins_of_a_slow_system_are_put_together():
    points = {0.125: 4.0, 0.375: 8.0, 0.625: 4.0, 0.875: 4.0, 1.125: 8.0}
    assert longer_bins(points, 1) == points
    assert longer_bins(points, 2) == {0.25: 6.0, 0.75: 4.0}
    assert longer_bins({}, 4) == {}
