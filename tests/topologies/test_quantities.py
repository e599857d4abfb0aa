"""Quantities: parsing, refusals, and lossless formatting."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.quantities import (
    BY_SUFFIX,
    DURATION,
    EVENT_RATE,
    FRACTION,
    LARGEST,
    RATE,
    SIZE,
    Quantity,
    QuantityError,
    parse_fraction,
    quantity_of,
    yaml_name,
)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (DURATION.parse_whole, "15ms", 15_000),
        (DURATION.parse_whole, "1.5 s", 1_500_000),
        (RATE.parse_whole, "10gbit", 10_000_000_000),
        (SIZE.parse_whole, "4KiB", 4096),
        (EVENT_RATE.parse, "20000/s", 20_000),
        (EVENT_RATE.parse, "2M/s", 2_000_000),
        (parse_fraction, "1%", 0.01),
    ],
)
def test_quantities_are_parsed_with_their_units(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        (DURATION.parse_whole, 15, "has no unit: write a duration such as 15ms"),
        (DURATION.parse_whole, "15", "is not a duration"),
        (DURATION.parse_whole, "15 parsecs", "'parsecs' is not a unit of a duration: known are us, ms, s,"),
        (DURATION.parse_whole, "5m", "minutes or milliseconds"),
        (DURATION.parse_whole, "1e3ms", "is not a duration"),
        (DURATION.parse_whole, "0.5us", "finer than the smallest step"),
        (DURATION.parse_whole, "99999999999999h", "too large"),
        (DURATION.parse_whole, "9" * 100 + "s", "is not a duration"),
        (DURATION.parse_whole, True, "is not a duration"),
        (DURATION.parse_whole, "\u0661\u0665ms", "is not a duration"),
        (RATE.parse_whole, "10mbps", "tc reads bps as bytes per second"),
        (SIZE.parse_whole, "10b", "bits or bytes"),
        (parse_fraction, 0.01, "has no unit: write a percentage such as 1%"),
        (parse_fraction, "101%", "more than 100%"),
    ],
)
def test_ambiguous_quantities_are_refused(parse, text, said):
    with pytest.raises(QuantityError) as error:
        parse(text)
    assert said in str(error.value)


@given(st.sampled_from([DURATION, RATE, SIZE]), st.integers(0, LARGEST))
def test_whole_quantities_round_trip_through_text(quantity: Quantity, value: int):
    assert quantity.parse(quantity.format(value)) == value


@given(st.sampled_from([EVENT_RATE, FRACTION]), st.decimals(0, 1, places=9))
def test_fractions_round_trip_through_text(quantity: Quantity, value):
    assert quantity.parse(quantity.format(float(value))) == float(value)


@given(st.sampled_from(BY_SUFFIX), st.text(max_size=60))
def test_arbitrary_text_is_parsed_or_refused(quantity: Quantity, text: str):
    with contextlib.suppress(QuantityError):
        assert 0 <= quantity.parse(text) <= LARGEST


def test_yaml_names_have_no_unit():
    names = ("delay_us", "rate_bits_per_s", "rate_per_s", "event_size_bytes", "queue_packets", "loss")
    assert [yaml_name(name) for name in names] == ["delay", "rate", "rate", "event_size", "queue", "loss"]
    assert quantity_of("rate_bits_per_s") is RATE
    assert quantity_of("rate_per_s") is EVENT_RATE
    assert quantity_of("loss") is None
