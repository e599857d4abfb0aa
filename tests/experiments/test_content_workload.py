"""Content: templates become ranges, from the seed alone; what does not fit together is refused."""

import pytest
from pydantic import TypeAdapter, ValidationError

from experiments.workloads.content import ContentWorkload
from experiments.workloads.kinds import AnyWorkload
from topologies.document import Document, validated
from topologies.errors import InputError

S = 1_000_000
PRICE, VOLUME = {"name": "price", "max": 200.0}, {"name": "volume", "type": "integer", "min": 1, "max": 100}


def given(attributes=(PRICE, VOLUME), size="30B", **subscriptions):
    return {
        "kind": "content", "event_size": size, "rate": "5/s", "attributes": list(attributes),
        "subscriptions": {"templates": [{"ranges": {"price": "10%"}}], **subscriptions},
    }  # fmt: skip


def read(**fields):
    return TypeAdapter(AnyWorkload).validate_python(given(**fields))


def asked(workload, subscribers=200, seed=1):
    return workload.subscriptions([f"r0/s-{n}" for n in range(subscribers)], 10 * S, seed)


def test_a_template_says_how_much_of_an_attribute_is_wanted_and_all_of_the_others():
    for mine in asked(read(each=3)).values():
        assert [each.number for each in mine] == [0, 1, 2]
        for each in mine:
            (low, high), volumes = each.ranges
            assert 0 <= low < high <= 200
            assert high - low == pytest.approx(20)
            assert volumes == (1, 100)


def test_ranges_of_integers_hold_whole_numbers_of_values():
    templates = [{"ranges": {"volume": "0%"}}, {"ranges": {"volume": "7%"}}, {"ranges": {"volume": "100%"}}]
    found = {each.ranges[1] for mine in asked(read(templates=templates)).values() for each in mine}
    assert {high - low + 1 for low, high in found} == {1, 7, 100}
    assert all(low.is_integer() and 1 <= low <= high <= 100 for low, high in found)


def test_templates_are_as_frequent_as_they_weigh():
    templates = [{"weight": 3, "ranges": {"price": "1%"}}, {"ranges": {"volume": "1%"}}]
    found = [
        each.ranges[1] == (1, 100)
        for mine in asked(read(each=5, templates=templates)).values()
        for each in mine
    ]
    assert 0.7 < sum(found) / len(found) < 0.8


def test_a_subscription_that_ends_says_the_ranges_that_it_had():
    for mine in asked(read(each=2, change="3s")).values():
        active = {}
        for each in mine:
            if each.on:
                assert each.number not in active
                active[each.number] = each.ranges
            else:
                assert active.pop(each.number) == each.ranges
            assert len(active) <= 2
        assert len(mine) == 2 + 2 * 3


def test_it_reads_back_from_its_own_json_and_follows_from_the_seed():
    workload = read(each=2, change="3s")
    written = workload.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert ContentWorkload.model_validate(written) == workload
    assert asked(workload) == asked(workload) != asked(workload, seed=2)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"size": "15B"}, "event_size: is less than 2 values need, 16 B"),
        ({"attributes": [PRICE, PRICE]}, "attributes: there are two price"),
        ({"attributes": [PRICE | {"min": 200.0}]}, "should be more than min"),
        ({"attributes": [VOLUME | {"max": 9.5}]}, "no integer"),
        (
            {"templates": [{"ranges": {"prise": "1%"}}]},
            "ranges.prise: there is no such attribute: did you mean price?",
        ),
        ({"templates": []}, "templates"),
        ({"each": 0}, "each"),
    ],
)
def test_what_does_not_fit_together_is_refused(fields, said):
    with pytest.raises((InputError, ValidationError), match=said.replace("?", r"\?")):
        validated(ContentWorkload, Document("file", given(**fields), {}))
