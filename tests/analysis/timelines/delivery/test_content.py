"""Deliveries required by content, compared with matching every event and subscription separately."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.capture.clocks.machine_clocks import ONE_CLOCK
from analysis.timelines.delivery.content import ContentFiles
from analysis.timelines.delivery.delivery_records import SUBSCRIPTIONS
from analysis.timelines.delivery.selectivity import selectivity
from analysis.timelines.under_way import InFlightSpans
from node.core.content.content import UNSPECIFIED
from node.core.content.content_matching import EventIndex
from node.core.content.content_measures import event, interest
from node.core.declaration import Contract, Declared, Trait
from node.core.measures import Columns
from node.core.specification import PlannedSubscription
from tests.analysis.timelines.delivery.test_total_order import metadata

S = 1_000_000_000
CONTRACT = Contract("sent", "content", "subscription", settle_us=1_000_000)

DOMAINS = ((0.0, 5.0),) * 2
values = st.tuples(*[st.integers(0, 5) | st.just(UNSPECIFIED)] * 2)
ranges = st.tuples(*[st.tuples(st.integers(0, 5), st.integers(0, 5)).map(sorted)] * 2)
times = st.lists(st.integers(0, 12), min_size=1, max_size=4).map(sorted)


def written(folder, host, measured):
    path = folder / f"{host}.measures"
    path.write_bytes(Columns().encode(measured))
    return host, path


def read(folder, events, asked):
    publishers = [
        written(folder, f"p{stream}", [(t * S, event(stream, seq, v)) for seq, (t, v) in enumerate(mine, 1)])
        for stream, mine in enumerate(events)
    ]
    clients = [
        written(
            folder,
            f"c{client}",
            [
                (t * S, interest(kind, 0, PlannedSubscription(0, number, ranges=tuple(map(tuple, wanted)))))
                for number, (when, wanted) in enumerate(mine)
                for t, kind in zip(when, SUBSCRIPTIONS, strict=False)
            ],
        )
        for client, mine in enumerate(asked)
    ]
    return ContentFiles(DOMAINS, tuple(publishers), tuple(clients)).read(ONE_CLOCK)


def wants(of_one, value):
    """Return whether a range matches; an unspecified value matches only the full range."""
    return of_one == [0, 5] if value is UNSPECIFIED else of_one[0] <= value <= of_one[1]


def by_hand(events, asked):
    """Return every matching client, stream and number, and whether it must arrive."""
    found = {}
    for client, mine in enumerate(asked):
        for when, wanted in mine:
            asking, asked_at, ending, ended = [*when, *[float("inf")] * 4][:4]
            for stream, published in enumerate(events):
                for seq, (t, v) in enumerate(published, 1):
                    if not all(wants(each, x) for each, x in zip(wanted, v, strict=True)):
                        continue
                    if asking - 1 <= t <= ended + 1:
                        key = client, stream, seq
                        found[key] = found.get(key, False) or asked_at < t < ending - 1
    return found


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 12), values), max_size=6), min_size=1, max_size=3),
    st.lists(st.lists(st.tuples(times, ranges), max_size=4), min_size=1, max_size=3),
)
def test_audiences_equal_those_computed_event_by_event(tmp_path_factory, events, asked):
    content = read(tmp_path_factory.mktemp("content"), events, asked)
    matched = content.matched(CONTRACT, range(len(events)), InFlightSpans(CONTRACT.settle_us * 1000))
    found = {}
    columns = (matched.client, matched.stream, matched.seq, matched.must)
    for client, stream, seq, must in zip(*(each.tolist() for each in columns), strict=True):
        found[client, stream, seq] = found.get((client, stream, seq), False) or must
    assert found == by_hand(events, asked)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 12), values), max_size=6), min_size=1, max_size=3),
    st.lists(st.lists(st.tuples(times, ranges), max_size=4), min_size=1, max_size=3),
    st.integers(1, 8),
)
def test_selectivity_equals_that_computed_event_by_event(tmp_path_factory, events, asked, together):
    content = read(tmp_path_factory.mktemp("content"), events, asked)
    contract = Contract("sent", "content", "subscription", settle_us=1_000_000)
    of_run = replace(
        metadata(), declared=Declared("x", {"s": (Trait.SUBSCRIBER,)}, contract, workloads=("content",)),
        owner=dict.fromkeys(range(len(events)), "r0"),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventIndex.matches, "__defaults__", (together,))  # clients reach over several blocks
        counted = selectivity(content, of_run)
    one_by_one = [
        by_hand(events, [[asked[client][number]]]).items()
        for client in range(len(asked))
        for number in range(len(asked[client]))
    ]
    of_subscriptions = Counter(key[1:] for found in one_by_one for key, must in found if must)
    of_clients = Counter(key[1:] for key, must in by_hand(events, asked).items() if must)
    numbers = [(stream, seq) for stream, mine in enumerate(events) for seq in range(1, len(mine) + 1)]
    for what, by_event in (("subscriptions", of_subscriptions), ("clients", of_clients)):
        mine = [row for row in counted.to_pylist() if row["what"] == what]
        expected = Counter(by_event[number] for number in numbers)
        assert {row["matched"]: row["events"] for row in mine} == dict(expected)
