"""Values, ranges and matching by the paper's rule (Meghdoot 3.4), also for unspecified values of events."""

import pytest

from node.core.content.content import UNSPECIFIED, ContentAttribute, attributes_of, event_ranges, matches
from node.core.ordinals import of_word

PRICE = ContentAttribute("price", "real", 0.0, 500.0)
VOLUME = ContentAttribute("volume", "integer", 0.0, 1000.0)
SYMBOL = ContentAttribute("symbol", "string", of_word("aaz", 3), of_word("zzz", 3), length=3)
SIDE = ContentAttribute("side", "string", 0.0, 1.0, labels=("buy", "sell"))
DAY = ContentAttribute("day", "date", 10228.0, 12052.0)
ALL = (PRICE.low, PRICE.high)


@pytest.mark.parametrize(
    ("wanted", "value", "is_wanted"),
    [
        ((10.0, 30.0), 10.0, True),
        ((10.0, 30.0), 30.0, True),
        ((10.0, 30.0), 30.01, False),
        ((20.0, 20.0), 20.0, True),
        ((20.0, 500.0), 19.99, False),
        (ALL, 0.0, True),
        (ALL, UNSPECIFIED, True),
        ((0.0, 499.0), UNSPECIFIED, False),
        ((0.5, 500.0), UNSPECIFIED, False),
    ],
)
def test_a_range_contains_its_values_and_a_whole_range_also_unspecified_ones(wanted, value, is_wanted):
    others, of_others = ((5.0, 5.0),), (5.0,)
    about = event_ranges((PRICE, VOLUME), (value, *of_others))
    assert matches((wanted, *others), about) == is_wanted
    assert not matches((wanted, (6.0, 7.0)), about)


@pytest.mark.parametrize(
    ("attribute", "text", "value"),
    [
        (PRICE, "18.31", 18.31),
        (VOLUME, "1000", 1000),
        (DAY, "1998-01-30", 10256),
        (SIDE, "sell", 1),
        (SYMBOL, "ab", 29),
    ],
)
def test_values_are_parsed_and_formatted_as_users_write_them(attribute, text, value):
    assert attribute.number(text) == value
    assert attribute.text(value) == text
    assert attribute.text(UNSPECIFIED) == ""


@pytest.mark.parametrize(
    ("attribute", "text", "said"),
    [
        (PRICE, "cheap", "'cheap' is not a number"),
        (PRICE, "500.5", "'500.5' is not from 0 to 500"),
        (VOLUME, "1.5", "'1.5' is not an integer"),
        (DAY, "30/Jan/98", "not a date such as 2002-12-31"),
        (SIDE, "hold", "none of its 2 values"),
        (SYMBOL, "abcd", "not a word of at most 3 letters"),
    ],
)
def test_invalid_values_are_refused_with_a_reason(attribute, text, said):
    with pytest.raises(ValueError, match=said):
        attribute.number(text)


def test_attributes_are_read_from_plans_of_any_version():
    old = {"name": "price", "kind": "real", "low": 0.0, "high": 500.0}
    more = {**old, "kind": "string", "labels": ["buy", "sell"], "drawn": {"kind": "zipf"}}
    assert attributes_of({"attributes": [old, more]}) == (
        PRICE,
        ContentAttribute("price", "string", 0.0, 500.0, labels=("buy", "sell")),
    )
    assert attributes_of({"kind": "stream"}) == ()
