"""Values of events: single and in bulk, by Zipf's law, unspecified, from stock quotes and from rows."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.content import stock_quotes
from node.core.content.event_values import BLOCK_EVENTS, EventValues, packed, unpacked

REAL = {"name": "price", "kind": "real", "low": 0.0, "high": 500.0}
WHOLE = {"name": "volume", "kind": "integer", "low": 1.0, "high": 50.0}


def values_of(*attributes, seed=1, stream=0, streams=1, rows="", **workload):
    return EventValues({"attributes": attributes, **workload}, seed, stream, streams, rows)


def drawn(attribute, count=50_000):
    return values_of(attribute).many(0, count)[:, 0]


@given(st.integers(0, 3 * BLOCK_EVENTS), st.integers(0, 2 * BLOCK_EVENTS))
def test_a_publisher_and_a_study_get_the_same_values(first, count):
    partial = WHOLE | {"unspecified": 0.5}
    many = values_of(REAL, partial).many(first, count)
    one_by_one = values_of(REAL, partial)
    for place in {0, count // 2, count - 1} & set(range(count)):
        np.testing.assert_array_equal(one_by_one.one(first + place), many[place])
    assert many.shape == (count, 2)


def test_streams_and_seeds_differ():
    assert (
        len(
            {
                values.one(7)
                for values in (values_of(REAL), values_of(REAL, seed=2), values_of(REAL, stream=1, streams=2))
            }
        )
        == 3
    )


@pytest.mark.parametrize("skew", [0.5, 1.5])
def test_zipf_draws_values_in_proportion_to_their_rank(skew):
    counts = Counter(drawn(WHOLE | {"drawn": {"kind": "zipf", "skew": skew}}).tolist())
    weights = np.arange(1, 51) ** -skew
    expected = 50_000 * weights / weights.sum()
    found = np.array([counts[value] for value in range(1, 51)])
    assert (np.abs(found - expected) < 6 * np.sqrt(expected)).all()


def test_zipf_has_its_peak_at_the_requested_value():
    found = drawn(REAL | {"drawn": {"kind": "zipf", "skew": 1.2, "parts": 50, "peak": 20.0}})
    part = Counter((found // 10).astype(int).tolist()).most_common(3)
    assert part[0][0] == 2
    assert {place for place, _ in part[1:]} == {1, 3}


@given(st.floats(0, 1e6, allow_nan=False), st.integers(1, 2000), st.integers(1, 3000))
def test_zipf_stays_within_its_attribute(low, width, parts):
    zipf = {"kind": "zipf", "skew": 1.0, "parts": parts, "peak": float(int(low) + width)}
    whole = {"name": "n", "kind": "integer", "low": float(int(low)), "high": float(int(low) + width)}
    found = drawn(whole | {"drawn": zipf}, 300)
    assert (found == np.floor(found)).all()
    assert whole["low"] <= found.min() <= found.max() <= whole["high"]


def test_the_requested_share_of_values_is_unspecified():
    found = values_of(REAL | {"unspecified": 0.3}, WHOLE).many(0, 20_000)
    assert 0.28 < np.isnan(found[:, 0]).mean() < 0.32
    assert not np.isnan(found[:, 1]).any()


def test_rows_are_used_in_order_and_repeated():
    rows = np.array([[1.5, 2], [2.5, np.nan], [3.5, 4]])
    values = values_of(REAL, WHOLE, rows=packed(rows), events={"source": "rows"})
    np.testing.assert_array_equal(values.many(0, 5), rows[[0, 1, 2, 0, 1]])
    assert not np.isnan(values.sample(100, np.random.default_rng(1))).any()


@pytest.mark.parametrize("text", ["", "AAAA", packed(np.zeros((1, 3)))])
def test_invalid_rows_are_refused(text):
    with pytest.raises(ValueError, match="rows of values"):
        unpacked(text, 2)


def quotes(**asked):
    return EventValues(stock_quotes.workload(uniform=False), 1, **asked)


def test_quotes_have_the_papers_number_and_skew():
    names = [each["name"] for each in stock_quotes.ATTRIBUTES]
    assert names == ["date", "symbol", "open", "high", "low", "close", "volume"]
    rows = quotes().many(0, stock_quotes.QUOTES_OF_100)
    date, symbol, opened, high, low, closed, volume = rows.T
    assert len(np.unique(symbol)) == 100
    assert len(np.unique(rows, axis=0)) == stock_quotes.QUOTES_OF_100
    assert (np.diff(date) >= 0).all()
    assert (high >= np.maximum(opened, closed)).all()
    assert (low <= np.minimum(opened, closed)).all()
    assert 0.7 < ((opened >= 10) & (opened <= 30)).mean() < 0.95
    for each, values in zip(quotes().attributes, rows.T, strict=True):
        assert each.low <= values.min() <= values.max() <= each.high
        assert not each.is_whole or (values == np.floor(values)).all()
    of_stock = {each: volume[symbol == each].mean() for each in np.unique(symbol)}
    assert max(of_stock.values()) > 30 * np.median(list(of_stock.values()))


def test_publishers_share_the_quotes():
    whole = quotes().many(0, 40)
    shares = [quotes(stream=stream, streams=4).many(0, 10) for stream in range(4)]
    np.testing.assert_array_equal(np.stack(shares, axis=1).reshape(40, 7), whole)


def test_uniform_events_fill_the_papers_space():
    events = EventValues(stock_quotes.workload(uniform=True), 1).many(0, 20_000)
    for each, values in zip(quotes().attributes, events.T, strict=True):
        quarters = np.histogram(values, 4, (each.low, each.high))[0]
        assert (np.abs(quarters - 5000) < 400).all()
