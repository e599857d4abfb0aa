"""The store agrees with a list of all updates: the latest one counts, and all matches are found."""

from dataclasses import replace
from random import Random

import pytest

from node.core.content.content import ContentAttribute
from node.protocols.meghdoot.space import Space
from node.protocols.meghdoot.subscriptions import Packing, SubscriptionStore, SubscriptionUpdate, version_of
from node.protocols.meghdoot.zones.bounds import covering

SPACE = Space((ContentAttribute("price", "real", 0, 100), ContentAttribute("volume", "integer", 1, 1000)))


def any_subscription(rng, subscribers=5, numbers=8):
    ranges = tuple(tuple(sorted(rng.uniform(low, high) for _ in "ab")) for low, high in ((0, 100), (1, 1000)))
    version = version_of(rng.randrange(2), rng.randrange(6))
    said_us = rng.randrange(1_000)
    return SubscriptionUpdate(
        rng.randrange(subscribers), rng.randrange(numbers), version, rng.random() < 0.7, said_us, ranges
    )


def latest(words):
    """Return, by key, the update with the greatest version, among equals the first that arrived."""
    found = {}
    for each in words:
        if each.key not in found or each.version > found[each.key].version:
            found[each.key] = each
    return found


def same(one, other):
    return replace(one, refreshed_us=0) == replace(other, refreshed_us=0)


@pytest.mark.parametrize("seed", range(2))
def test_the_latest_version_counts_and_all_matches_are_found(seed):
    rng = Random(seed)
    store, words = SubscriptionStore(SPACE), []
    for _ in range(400):
        words.append(any_subscription(rng))
        store.put(words[-1])
        if rng.random() < 0.2:
            key = rng.choice(words).key
            store.remove(key)
            words = [each for each in words if each.key != key]
        expected = latest(words)
        assert {each.key for each in store} == expected.keys()
        assert all(same(each, expected[each.key]) for each in store)
        standing = [each for each in expected.values() if each.is_on]
        assert len(store) == len(standing)
        values = rng.uniform(0, 100), rng.uniform(1, 1000)
        matching = {each.key for each in store.matching(covering(values, values))}
        assert matching == {
            each.key
            for each in standing
            if all(low <= value <= high for (low, high), value in zip(each.ranges, values, strict=True))
        }
        points = {SPACE.point(each.ranges) for each in standing}
        assert {tuple(point) for point in store.points().T.tolist()} == points


def test_subscriptions_without_refresh_expire():
    store, word = SubscriptionStore(SPACE), any_subscription(Random(1))
    store.put(replace(word, is_on=True, refreshed_us=10))
    assert not store.put(replace(word, is_on=True, refreshed_us=20))
    assert store.expire(20) == []
    assert [each.key for each in store.expire(21)] == [word.key]
    assert store.get(word.key) is None


def test_encoded_subscriptions_decode_unchanged():
    rng = Random(3)
    words = [any_subscription(rng) for _ in range(20)]
    packing = Packing(2)
    packed = packing.pack(words, 5_000)
    assert list(packing.unpack(packed, 5_000)) == words
    later = packing.unpack(packed[:-1], 105_000)
    assert [each.refreshed_us - 100_000 for each in later] == [each.refreshed_us for each in words[:-1]]
