"""The load of drivers: rates, collection, keys, and the form for the nodes."""

from typing import Any

import pytest
from pydantic import ValidationError

from experiments.workloads.stream import StreamWorkload

PLAIN = {"event_size": "10B", "rate": "5/s"}


def read(**fields: Any) -> StreamWorkload:
    return StreamWorkload.model_validate({**PLAIN, **fields})


def test_the_plan_of_plain_events_has_no_collection_or_keys():
    assert read().as_plan() == {"event_size_bytes": 10, "rate_per_s": 5, "closed_loop": False}


@pytest.mark.parametrize(
    ("collect", "told"),
    [
        ({"last": 100_000_000}, {"predicate": "last", "argument": 100_000_000}),
        ({"same_key": 8}, {"predicate": "same_key", "argument": 8}),
        ({"last": 9, "one_of": 100}, {"predicate": "last", "argument": 9, "one_of": 100}),
        (
            {"older_than": "7d", "every": "1d"},
            {"predicate": "older_than", "argument": 604_800_000_000, "every_us": 86_400_000_000},
        ),
    ],
)
def test_a_rule_of_collection_is_a_predicate_with_its_argument(collect, told):
    assert read(collect=collect).as_plan()["collect"] == told


def test_the_plan_has_all_key_settings():
    keys = {"distribution": "zeta", "skew": 1.2, "insertions": "10%"}
    told = {"distribution": "zeta", "skew": 1.2, "count": 100_000, "insertions": 0.1}
    assert read(keys=keys).as_plan()["keys"] == told


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"collect": {"last": 5, "same_key": 4}}, "one of: last, older_than, same_key"),
        ({"collect": {"last": 5, "every": "1s", "one_of": 4}}, "combined with every"),
        ({"collect": {"same_key": 11}}, "longer than an event of 10 B"),
        ({"keys": {"distribution": "zeta", "skew": 1.0}}, "more than 1 for zeta"),
    ],
)
def test_impossible_workloads_are_refused(fields, said):
    with pytest.raises(ValidationError, match=said):
        read(**fields)
