"""Content workloads: ranges of templates depend only on the seed, and inconsistent fields are refused."""

import json

import pytest
from pydantic import TypeAdapter, ValidationError

from experiments.workloads.content import ContentWorkload
from experiments.workloads.kinds import AnyWorkload
from node.core.content import content
from tests.refusals import refusal
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


def test_a_template_restricts_only_the_attributes_it_names():
    for mine in asked(read(each=3)).values():
        assert [each.number for each in mine] == [0, 1, 2]
        for each in mine:
            (low, high), volumes = each.ranges
            assert 0 <= low < high <= 200
            assert high - low == pytest.approx(20)
            assert volumes == (1, 100)


def test_ranges_of_integers_hold_whole_numbers_of_values():
    templates = [{"ranges": {"volume": "0.1%"}}, {"ranges": {"volume": "7%"}}, {"ranges": {"volume": "100%"}}]
    found = {each.ranges[1] for mine in asked(read(templates=templates)).values() for each in mine}
    assert {high - low + 1 for low, high in found} == {1, 7, 100}
    assert all(low.is_integer() and 1 <= low <= high <= 100 for low, high in found)


def test_templates_are_drawn_by_weight():
    templates = [{"weight": 3, "ranges": {"price": "1%"}}, {"ranges": {"volume": "1%"}}]
    found = [
        each.ranges[1] == (1, 100)
        for mine in asked(read(each=5, templates=templates)).values()
        for each in mine
    ]
    assert 0.7 < sum(found) / len(found) < 0.8


def test_the_end_of_a_subscription_repeats_its_ranges():
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


def test_a_content_workload_reads_back_and_depends_on_the_seed():
    workload = read(each=2, change="3s")
    written = workload.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert ContentWorkload.model_validate(written) == workload
    assert asked(workload) == asked(workload) != asked(workload, seed=2)


SYMBOL = {"name": "symbol", "type": "string", "min": "aaa", "max": "zzz"}
SIDE = {"name": "side", "type": "string", "values": ["buy", "sell"]}
DAY = {"name": "day", "type": "date", "min": "1998-01-02", "max": "2002-12-31"}


def test_strings_and_dates_become_ordinals():
    attributes = read(attributes=[SYMBOL, SIDE, DAY], templates=[{"ranges": {}}]).as_plan()["attributes"]
    symbol, side, day = content.attributes_of({"attributes": attributes})
    assert (symbol.text(symbol.low), symbol.text(symbol.high)) == ("aaa", "zzz")
    assert (side.low, side.high, side.labels) == (0, 1, ("buy", "sell"))
    assert (day.low, day.high) == (10228, 12052)


def test_template_ranges_may_be_equal_one_sided_between_fixed_or_several():
    ranges = {
        "price": [{"min": 10, "max": 30}, {"min": 50}, {"value": 45}],
        "symbol": "equal", "volume": "above", "day": {"max": "1998-12-31"},
    }  # fmt: skip
    workload = read(
        attributes=[PRICE, VOLUME, SYMBOL, DAY], size="40B", each=2, templates=[{"ranges": ranges}]
    )
    for mine in asked(workload).values():
        assert [each.number for each in mine] == list(range(6))
        prices = [each.ranges[0] for each in mine]
        assert prices == [(10, 30), (50, 200), (45, 45)] * 2
        for one, two in ((mine[0], mine[1]), (mine[3], mine[5])):
            assert one.ranges[1:] == two.ranges[1:]
        for each in mine:
            _, volume, symbol, day = each.ranges
            assert symbol[0] == symbol[1]
            assert volume[1] == 100
            assert day == (10228, 10591)


def test_subscriptions_of_one_template_with_several_ranges_end_together():
    templates = [{"ranges": {"price": ["1%", "2%"]}}]
    for mine in asked(read(each=2, change="3s", templates=templates)).values():
        active = set()
        for each in mine:
            active = active | {each.number} if each.on else active - {each.number}
        assert len(mine) == 2 * (2 + 2 * 3)
        assert len(active) == 4
        assert {number ^ 1 for number in active} == active


def test_the_preset_has_the_papers_schema_and_templates():
    workload = TypeAdapter(AnyWorkload).validate_python(PRESET)
    plan = workload.as_plan()
    assert [each["name"] for each in plan["attributes"]][:3] == ["date", "symbol", "open"]
    assert [each["weight"] for each in plan["templates"]] == [20, 35, 35, 5, 5]
    assert plan["events"] == {"source": "stocks", "stocks": 100, "skew": 1.0, "seed": 1}
    assert json.loads(json.dumps(plan)) == json.loads(json.dumps(workload.as_plan()))
    uniform = TypeAdapter(AnyWorkload).validate_python(PRESET | {"preset": "stock-quotes-uniform"})
    assert uniform.as_plan()["events"]["source"] == "drawn"
    assert asked(uniform) == asked(workload)  # the same quotes are in their minds
    own = PRESET | {"subscriptions": {"templates": [{"ranges": {"volume": {"min": 1000}}}]}}
    assert asked(TypeAdapter(AnyWorkload).validate_python(own), 1)["r0/s-0"][0].ranges[6] == (
        1000,
        310_000_000,
    )


TOPICS = {
    "kind": "topics", "event_size": "20B", "rate": "5/s", "topics": 3,
    "subscriptions": {"each": 1, "within": "2s"},
}  # fmt: skip
PRESET = {
    "kind": "content", "preset": "stock-quotes", "event_size": "60B", "rate": "5/s", "subscriptions": {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"preset": "stocks"}, "preset: should be 'stock-quotes' or 'stock-quotes-uniform', not 'stocks'"),
        ({"attributes": [PRICE]}, "attributes: cannot be combined with a preset, which has its own"),
        ({"events": {"file": "x.csv", "skew": 1.0}}, "events.file: cannot be combined with quotes of stocks"),
        ({"events": {"columns": {"open": "Open"}}}, "events.columns: are set, but there is no file"),
        ({"events": {"file": "x.csv", "columns": {"opn": "Open"}}}, "events.columns.opn: there is no such"),
        ({"preset": None}, "attributes: is missing: list them, or use a preset such as stock-quotes"),
        ({"preset": None, "attributes": [PRICE]}, "subscriptions.templates: is missing: list them, or use"),
        (
            {
                "preset": None,
                "attributes": [PRICE],
                "events": {"stocks": 5},
                "subscriptions": {"templates": [{"ranges": {}}]},
            },
            "events: has quotes of stocks, which need preset: stock-quotes",
        ),
    ],
)
def test_presets_and_events_that_do_not_fit_are_refused(fields, said):
    assert refusal(validated, ContentWorkload, Document("file", PRESET | fields, {})).startswith(
        f"file: {said}"
    )


def with_one(attribute, **changed):
    return {"attributes": [attribute | changed]}


def wish(ranges, **attribute):
    return {
        "attributes": [{"name": "price", "max": 200.0} | attribute],
        "templates": [{"ranges": {"price": ranges}}],
    }


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"attributes": [{"name": "price"}]}, "attributes.0.max: is missing"),
        (with_one(PRICE, max="high"), "attributes.0.max: should be a number, not 'high'"),
        (
            {"attributes": [PRICE, VOLUME | {"name": "price"}], "templates": [{"ranges": {"volume": "1%"}}]},
            "attributes.1.name: the name price is taken",
        ),
        (with_one(PRICE, max="1e3"), "attributes.0.max: should be a number, not '1e3': write 1000"),
        (with_one(VOLUME, max="1.5"), "attributes.0.max: should be an integer, not '1.5'"),
        (
            with_one(PRICE, drawn={"skew": "1.5"}),
            "attributes.0.drawn.skew: should be a valid number, not '1.5':",
        ),
        (
            with_one(VOLUME, max=(1 << 53) + 2),
            "attributes.0: has a bound beyond 9007199254740992, from where not",
        ),
        (
            with_one(VOLUME, max=10**400),
            "attributes.0.max: should be a number that a double can hold, not 1000",
        ),
        (with_one(PRICE, unspecified="100%"), "attributes.0.unspecified: leaves it out of all events: write"),
        (
            with_one(SYMBOL, min="", drawn={"peak": "zzzz"}),
            "attributes.0.drawn.peak: 'zzzz' is not a word of at",
        ),
        (wish("0%"), "subscriptions.templates.0.ranges.price: selects no value: write more than 0%,"),
        (with_one(DAY, max="31/Dec/02"), "attributes.0.max: '31/Dec/02' is not a date such as"),
        (with_one(SYMBOL, max="z" * 12), "attributes.0: has more than 11 letters; values:"),
        (with_one(SIDE, values=["a", "b", "a"]), "attributes.0.values: has 'a' twice"),
        (with_one(SIDE, max="z"), "attributes.0.values: cannot be combined with min and max"),
        (wish("cheap"), "subscriptions.templates.0.ranges.price: should be a share such as 1%, or equal,"),
        (wish({}), "subscriptions.templates.0.ranges.price: should have a value, or min, max or both"),
        (wish({"min": 50, "max": 10}), "subscriptions.templates.0.ranges.price.max: should not be less"),
        (wish({"min": 0, "max": 300}), "subscriptions.templates.0.ranges.price.max: '300' is not from"),
        (with_one(PRICE, max=True), "attributes.0.max: should be a number, a word or a date"),
        (with_one(SIDE, type="real"), "attributes.0.values: are for type: string, not real"),
        (with_one(VOLUME, max=(1 << 53) + 1), "attributes.0.max: is 9007199254740993, but not all integers"),
        (wish({"value": "x"}), "subscriptions.templates.0.ranges.price.value: should be a number, not 'x'"),
    ],
)
def test_invalid_attributes_and_ranges_are_refused_in_one_line(fields, said):
    assert refusal(
        validated, ContentWorkload, Document("file", given(**{"size": "16B"} | fields), {})
    ).startswith(f"file: {said}")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"size": "15B"}, "event_size: is less than 2 values need, 16 B"),
        (with_one(PRICE, min=200.0), "should be more than min"),
        (with_one(VOLUME, max=9.5), "not an integer"),
        (
            {"templates": [{"ranges": {"prise": "1%"}}]},
            "ranges.prise: there is no such attribute: did you mean price?",
        ),
    ],
)
def test_inconsistent_content_workloads_are_refused(fields, said):
    with pytest.raises((InputError, ValidationError), match=said.replace("?", r"\?")):
        validated(ContentWorkload, Document("file", given(**fields), {}))


@pytest.mark.parametrize("fields", [given(within="2s"), TOPICS])
def test_first_subscriptions_are_made_within_the_run(fields):
    workload = TypeAdapter(AnyWorkload).validate_python(fields)
    assert list(workload.problems(1, 2 * S)) == []
    said = "2s is longer than the run, 1s"
    assert list(workload.problems(1, S)) == [(("subscriptions", "within"), said)]
