"""A gap is a wait longer than usual, attributed to a fault only if the fault can have caused it."""

import numpy as np
import pytest

from analysis.arrays import NEVER
from analysis.timelines.delivery.stream_pieces import ClientPieces
from analysis.timelines.recovering.gaps import ClientWaits

MS = 1_000_000
EVERY, TAKES, UNTIL = 50 * MS, 20 * MS, 10_000 * MS
CUT = 5_000 * MS
AROUND = {"calm_ns": 0, "next_ns": NEVER, "settle_ns": 1_000 * MS}


def stream(came_ns=None, *, due=None):
    """Return an event every 50 ms, which arrives 20 ms later unless `came_ns` says otherwise."""
    published_ns = np.arange(0, UNTIL, EVERY)
    arrived_ns = published_ns + TAKES if came_ns is None else came_ns(published_ns)
    count = np.ones(len(published_ns), np.int64)
    numbers = np.arange(len(published_ns)) + 1
    return ClientPieces(numbers, count, published_ns, ("client",), arrived_ns[np.newaxis], None, due)


def gap_of(cut, fault_ns=CUT, **around):
    """Return whether its client had a gap; None if that is unknown."""
    found, known = ClientWaits.from_intervals(cut, [0], UNTIL).gap_of(fault_ns, **{**AROUND, **around})
    return bool(found[0]) if known[0] else None


def held(from_ns, to_ns):
    """Delay events published in this period to its end."""

    def came_ns(published_ns):
        within = (published_ns >= from_ns) & (published_ns < to_ns)
        return np.where(within, to_ns, published_ns) + TAKES

    return came_ns


def lost(from_ns, to_ns):
    """Lose events published in this period."""
    return lambda t_ns: np.where((t_ns >= from_ns) & (t_ns < to_ns), NEVER, t_ns + TAKES)


def test_events_that_come_as_usual_make_no_gap():
    assert gap_of(stream()) is False


def test_jitter_makes_no_gap():
    for seed in range(50):
        jitter = np.random.default_rng(seed).integers(0, 100 * MS, UNTIL // EVERY)
        assert gap_of(stream(lambda published_ns, by=jitter: published_ns + TAKES + by)) is False


@pytest.mark.parametrize("way", [held, lost])
def test_a_pause_of_due_events_makes_a_gap(way):
    assert gap_of(stream(way(CUT, CUT + 500 * MS))) is True
    assert gap_of(stream(way(CUT + 900 * MS, CUT + 1_500 * MS))) is True


def test_permanently_missing_events_make_a_gap_until_publishing_ends():
    assert gap_of(stream(lost(CUT, UNTIL))) is True


@pytest.mark.parametrize("way", [held, lost])
def test_a_gap_long_after_or_before_a_fault_is_not_attributed_to_it(way):
    assert gap_of(stream(way(CUT + 2_000 * MS, CUT + 3_000 * MS))) is False
    assert gap_of(stream(way(CUT - 1_000 * MS, CUT - 200 * MS))) is False
    assert gap_of(stream(way(CUT - 500 * MS, CUT + 200 * MS))) is False
    assert gap_of(stream(way(CUT + 500 * MS, CUT + 1_000 * MS)), next_ns=CUT + 300 * MS) is False


@pytest.mark.parametrize("way", [held, lost])
def test_a_late_or_lost_event_of_a_rare_stream_makes_a_gap(way):
    every = 2_400 * MS
    published_ns = np.arange(100 * MS, UNTIL, every)
    for to_ns, gap in ((CUT, False), (CUT + 4_000 * MS, True)):
        came_ns = way(CUT, to_ns)(published_ns)
        numbers, count = np.arange(len(published_ns)) + 1, np.ones(len(published_ns), np.int64)
        cut = ClientPieces(numbers, count, published_ns, ("client",), came_ns[np.newaxis], None, None)
        assert gap_of(cut) is gap


def test_a_pause_of_the_publisher_makes_no_gap():
    whole = stream()
    there = (whole.published_ns < CUT) | (whole.published_ns > CUT + 1_000 * MS)
    columns = (whole.first_seq, whole.count, whole.published_ns)
    paused = ClientPieces(*(column[there] for column in columns), whole.hosts, whole.arrived_ns[:, there])
    assert gap_of(paused) is False


def test_events_that_were_not_due_are_not_missed():
    published_ns = np.arange(0, UNTIL, EVERY)
    due = ((published_ns < CUT) | (published_ns > CUT + 1_000 * MS))[np.newaxis]
    assert gap_of(stream(lost(CUT, CUT + 1_000 * MS), due=due)) is False
    assert gap_of(stream(lost(CUT, CUT + 1_000 * MS))) is True


def test_gaps_are_unknown_without_enough_earlier_events():
    assert gap_of(stream(lost(0, CUT))) is None
    assert gap_of(stream(held(CUT, CUT + 500 * MS)), calm_ns=CUT - 500 * MS) is None
