"""Event figures of the run, and of each stream by name."""

import pyarrow as pa
import pytest

from analysis.timelines import schemas
from analysis.timelines.event_figures import PER_CLIENT, event_figures, losses, stream_figures
from experiments.records.summary import STREAMS_MAX

NAMES = {0: "r0.0", 1: "r0.1", 2: "quiet"}


@pytest.fixture
def deliveries() -> pa.Table:
    rows = [
        {"client": client, "stream": stream, "published": 10, "delivered": 10 - lost, "lost": lost}
        for client, stream, lost in (("a", 0, 0), ("b", 0, 0), ("a", 1, 2), ("b", 1, 3))
    ]
    nothing = dict.fromkeys((*PER_CLIENT, "published_twice", "delivered_while_running"), 0)
    return pa.Table.from_pylist([nothing | row for row in rows], schema=schemas.DELIVERIES)


@pytest.fixture
def publishers() -> pa.Table:
    rows = [{"driver": "d", "stream": stream, "published": 10, "unordered": 0} for stream in (0, 1, 2)]
    return pa.Table.from_pylist([row | {"published_twice": 0} for row in rows], schema=schemas.PUBLISHERS)


def test_each_stream_has_its_figures_and_an_unfollowed_one_its_publications(deliveries, publishers):
    found = stream_figures(deliveries, publishers, NAMES)
    assert {name: (each["published"], each["delivered"], each["lost"]) for name, each in found.items()} == {
        "r0.0": (10, 20, 0),
        "r0.1": (10, 15, 5),
        "quiet": (10, 0, 0),
    }
    total = event_figures(deliveries, publishers)
    assert {name: sum(each[name] for each in found.values()) for name in ("published", "lost")} == {
        "published": total["published"],
        "lost": total["lost"],
    }


def test_many_streams_and_unmeasured_figures_are_omitted(deliveries, publishers):
    many = {number: f"t{number}" for number in range(STREAMS_MAX + 1)}
    assert stream_figures(deliveries, publishers, many) == {}
    assert stream_figures(None, publishers, NAMES) == {}


def test_pairs_that_lost_events_are_named_worst_first(deliveries):
    assert losses(deliveries, {1: "r0.1"}) == {
        "pairs": 2,
        "most": [
            {"client": "b", "stream": "r0.1", "lost": 3, "published": 10},
            {"client": "a", "stream": "r0.1", "lost": 2, "published": 10},
        ],
    }
    assert losses(deliveries.slice(0, 2), NAMES) == losses(None, NAMES) == {}
