"""The workload of the evaluation of collection (paper 5.4), and the savings of Hist under it."""

import random
from collections import Counter

import numpy as np
import pytest

from node.protocols.sprinkler.messages import EventKind, Events, Predicate
from node.protocols.sprinkler.storage.history import EventHistory
from node.protocols.sprinkler.storage.history_samples import HistorySamples, point_after
from node.protocols.sprinkler.storage.key_popularity import KeyDraws, invalidations_by_age

BATCH = 5000


def keys(distribution="zipf", skew=1.1, count=100_000, insertions=0.0, seed=5):
    return KeyDraws(distribution, skew, count, insertions, random.Random(seed))


def saved(source, events, batch=BATCH):
    """Return the share of events that Hist discards, at each of the growing numbers."""
    history, shares = EventHistory([0], 1 << 30), []
    stream = history.streams[0]
    for until in events:
        while stream.cnt < until:
            count = min(batch, until - stream.cnt)
            payload = b"".join(key + b".." for key in source.draw_bytes(count))
            first = stream.cnt + 1
            history.append(Events(EventKind.GC, Predicate.SAME_KEY, 0, first, count, 10, 8, 0, payload))
            history.commit(0, stream.cnt)
            history.collect_some()
        shares.append(1 - stream.live / until)
        assert stream.stored <= 2.5 * stream.live + 3 * batch
    return shares


@pytest.mark.slow
def test_a_fixed_set_of_keys_saves_the_computed_share():
    assert saved(keys(), [100_000, 300_000, 1_000_000]) == pytest.approx([0.83, 0.88, 0.935], abs=0.01)


def test_unbounded_keys_save_the_computed_share():
    assert saved(keys("zeta"), [100_000]) == pytest.approx([0.57], abs=0.01)


@pytest.mark.slow
def test_new_keys_make_little_difference():
    [fixed], [growing] = saved(keys(), [300_000]), saved(keys(insertions=1 / 11), [300_000])
    assert 0 < fixed - growing < 0.08  # every eleventh event is about a key that nothing collected before


@pytest.mark.parametrize("distribution", ["zipf", "zeta", "uniform"])
def test_the_same_seed_draws_the_same_keys(distribution):
    one, same, other = (keys(distribution, insertions=0.1, seed=seed) for seed in (1, 1, 2))
    drawn = one.draw(1000)
    assert (drawn == same.draw(1000)).all()
    assert (drawn != other.draw(1000)).any()


def test_keys_are_drawn_in_proportion_to_their_rank():
    drawn = Counter(keys(skew=1.0, count=100).draw(200_000).tolist())
    assert drawn[1] / drawn[10] == pytest.approx(10, rel=0.1)
    assert set(drawn) == set(range(1, 101))


def test_uniform_keys_have_equal_probability():
    drawn = Counter(keys("uniform", skew=3.0, count=50).draw(100_000).tolist())
    assert min(drawn.values()) == pytest.approx(max(drawn.values()), rel=0.2)


def test_the_requested_share_of_events_has_new_keys():
    source = keys(count=1000, insertions=0.2)
    drawn = source.draw(50_000)
    new = set(drawn.tolist()) - set(range(1, 1001))
    assert len(new) / 50_000 == pytest.approx(0.2, rel=0.05)
    assert max(new) == 1000 + len(new)


def test_keys_lose_popularity_as_they_age():
    ages = invalidations_by_age(1.1, 20, 3000, random.Random(1))
    assert ages.sum() == pytest.approx(20 * 3000, rel=0.02)
    young, middle, old = ages[:10].sum() / 10, ages[50:150].sum() / 100, ages[500:1500].sum() / 1000
    assert young > 2 * middle > 4 * old


def test_hist_has_twenty_samples_per_decade():
    history = EventHistory([0, 1], 1 << 30)
    samples, rows = HistorySamples(), []
    for first in range(1, 10_001, 50):
        history.append(Events(EventKind.GC, Predicate.LAST, 1, first, 50, 10, 100, 0, bytes(500)))
        history.commit(1, first + 49)
        history.collect_some()
        rows += samples.due(history)
    assert len(rows) == 21
    assert rows[0] == {"stream": 1, "events": 1000, "live": 101, "stored": 150, "bytes": 1500}
    assert [row["events"] for row in rows] == sorted({row["events"] for row in rows})
    assert point_after(1000) == 1122
    assert np.isclose(point_after(10**7) / 10**7, 10 ** (1 / 20), rtol=0.01)
