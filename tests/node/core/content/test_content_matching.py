"""The matching oracle agrees with a comparison of every event and every subscription."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from node.core.content.content import UNSPECIFIED, ContentAttribute, event_ranges, matches
from node.core.content.content_matching import EventIndex

ATTRIBUTES = [ContentAttribute(name, "integer", 0.0, 5.0) for name in "abc"]
DOMAINS = [(each.low, each.high) for each in ATTRIBUTES]

value = st.integers(0, 5).map(float) | st.just(UNSPECIFIED)
bounds = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(sorted).map(tuple)


@given(
    st.lists(st.tuples(*[value] * 3), max_size=12),
    st.lists(st.tuples(*[bounds | st.just((0, 5))] * 3), max_size=12),
    st.integers(1, 20),
)
def test_pairs_equal_those_of_single_comparisons(events, subscriptions, together):
    index = EventIndex(DOMAINS, np.array(events, float).reshape(-1, 3).T)
    low, high = np.moveaxis(np.array(subscriptions, float).reshape(-1, 3, 2), (2, 1), (0, 1))
    blocks = list(index.matches(low, high, together))
    found = [pair for block in blocks for pair in zip(*(each.tolist() for each in block), strict=True)]
    assert len(found) == len(set(found))
    assert set(found) == {
        (wanted, event)
        for (wanted, ranges), (event, values) in product(enumerate(subscriptions), enumerate(events))
        if matches(ranges, event_ranges(ATTRIBUTES, values))
    }
    assert all(len(block[0]) < together + len(events) for block in blocks)
