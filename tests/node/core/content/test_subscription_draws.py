"""Subscriptions drawn from templates: their ranges, frequencies and positions."""

import numpy as np
import pytest

from node.core.content import stock_quotes
from node.core.content.event_values import EventValues
from node.core.content.subscription_draws import SubscriptionDraws

REAL = {"name": "price", "kind": "real", "low": 0.0, "high": 500.0}
WHOLE = {"name": "volume", "kind": "integer", "low": 1.0, "high": 50.0}


def draws_of(*templates, attributes=(REAL, WHOLE), **workload):
    given = {"attributes": attributes, "templates": templates, **workload}
    return SubscriptionDraws(given, EventValues(given, 1))


def drawn(*ranges, count=500, attributes=(REAL, WHOLE), **workload):
    draws = draws_of(*({"weight": 1, "ranges": each} for each in ranges), attributes=attributes, **workload)
    return draws.draw(count, np.random.default_rng(1))


def test_each_predicate_becomes_its_range():
    one_sided = drawn({"price": [{"kind": "below"}], "volume": [{"kind": "above"}]})
    assert (one_sided.low[:, 0] == 0).all()
    assert len(np.unique(one_sided.high[:, 0])) == 500
    assert (one_sided.high[:, 1] == 50).all()
    assert set(one_sided.low[:, 1]) == set(range(1, 51))
    equal = drawn({"price": [{"kind": "equal"}], "volume": [{"kind": "between"}]})
    assert (equal.low[:, 0] == equal.high[:, 0]).all()
    assert (equal.low[:, 1] <= equal.high[:, 1]).all()
    assert (equal.low[:, 1] < equal.high[:, 1]).mean() > 0.9
    fixed = drawn({"price": [{"kind": "fixed", "low": 10.0, "high": 30.0}]})
    assert (fixed.low == (10, 1)).all()
    assert (fixed.high == (30, 50)).all()


@pytest.mark.parametrize("wanted", [None, {"kind": "zipf", "skew": 1.0}, {"kind": "events"}])
def test_a_share_is_that_fraction_of_all_values(wanted):
    attributes = [each | {"wanted": wanted} for each in (REAL, WHOLE)]
    found = drawn(
        {"price": [{"kind": "share", "share": 0.2}], "volume": [{"kind": "share", "share": 0.5}]},
        attributes=attributes,
    )
    width = found.high - found.low
    assert width[:, 0] == pytest.approx(100)
    assert (width[:, 1] == 24).all()
    assert (found.low >= (0, 1)).all()
    assert (found.high <= (500, 50)).all()


def test_several_ranges_are_several_subscriptions_of_one_wish():
    halves = [{"kind": "fixed", "low": 0.0, "high": 10.0}, {"kind": "fixed", "low": 20.0, "high": 30.0}]
    found = drawn({"price": halves, "volume": [{"kind": "equal"}, {"kind": "above"}]}, count=3)
    assert found.wish.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert found.low[:, 0].tolist() == [0, 0, 20, 20] * 3
    for wish in found.by_wish():
        assert wish[0][1] == wish[2][1] != wish[1][1] == wish[3][1]
        assert wish[0][1][0] == wish[0][1][1]


def test_templates_are_drawn_by_weight():
    draws = draws_of(
        {"weight": 3, "ranges": {"price": [{"kind": "equal"}]}},
        {"weight": 1, "ranges": {"volume": [{"kind": "equal"}]}},
    )
    found = draws.draw(20_000, np.random.default_rng(1))
    assert 0.73 < (found.low[:, 0] == found.high[:, 0]).mean() < 0.77
    assert found.wish.tolist() == list(range(20_000))


def test_subscriptions_may_take_their_values_from_one_event():
    wanted = {"kind": "events"}
    workload = stock_quotes.workload(uniform=False)
    rows = {tuple(row) for row in EventValues(workload, 1).many(0, 115_353)[:, [1, 2]].tolist()}
    templates = [{"weight": 1, "ranges": {"symbol": [{"kind": "equal"}], "open": [{"kind": "below"}]}}]
    given = workload | {"templates": templates}
    found = SubscriptionDraws(given, EventValues(given, 1)).draw(500, np.random.default_rng(1))
    assert wanted in [each["wanted"] for each in given["attributes"]]
    assert {(low, high) for low, high in zip(found.low[:, 1], found.high[:, 2], strict=True)} <= rows


def test_the_papers_subscriptions_have_its_templates_and_its_skew():
    for uniform in (False, True):
        workload = stock_quotes.workload(uniform=uniform)
        found = SubscriptionDraws(workload, EventValues(workload, 1)).draw(14_029, np.random.default_rng(1))
        low, high = ([each[name] for each in stock_quotes.ATTRIBUTES] for name in ("low", "high"))
        limited = (found.low > low) | (found.high < high)
        kinds, counts = np.unique(limited, axis=0, return_counts=True)
        names = [each["name"] for each in stock_quotes.ATTRIBUTES]
        shares = {
            " ".join(name for name, limits in zip(names, kind, strict=True) if limits): round(
                count / 14_029, 2
            )
            for kind, count in zip(kinds, counts, strict=True)
        }
        assert shares == pytest.approx(
            {
                "symbol open": 0.20,
                "symbol low": 0.35,
                "symbol high": 0.35,
                "symbol volume": 0.05,
                "volume": 0.05,
            },
            abs=0.011,
        )
        symbols = np.unique(found.low[found.low[:, 1] == found.high[:, 1], 1], return_counts=True)[1]
        assert len(symbols) == 100
        assert np.sort(symbols)[-1] > 1.7 * np.sort(symbols)[-2] > 0


def test_draws_depend_only_on_the_generator():
    draws = draws_of({"weight": 1, "ranges": {"price": [{"kind": "between"}]}})
    one, same, other = (draws.draw(9, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.low, same.low)
    assert (one.low != other.low).any()
    assert draws.draw(0, np.random.default_rng(1)).by_wish() == []
    assert one.first(2).low.tolist() == one.low[:2].tolist()
