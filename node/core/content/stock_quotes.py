"""The stock quotes of Meghdoot's evaluation (5.1): its schema, its templates of subscriptions, and a stream.

The paper's real events, daily quotes of 100 stocks over five years, are no longer available. This stream is
synthetic and has their published properties: 115,353 events, a quote of each stock a day, in order of time,
most prices between 10 and 30 dollars. A stock's price swings around a level of its own; levels are
log-normal. Volumes, and the number of subscribers per stock, fall with the rank of a stock by Zipf's law.

Interpretation: the calendar has all weekdays; because that is more days than the exchange's, some stocks are
listed later. The parameters of a subscription are those of a quote of its stock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from node.core import ordinals
from node.core.content.value_distributions import Floats

Ints = npt.NDArray[np.int64]

FIRST_DAY, LAST_DAY = "1998-01-02", "2002-12-31"
SYMBOL_LETTERS, SYMBOL_SHARES = (3, 4, 5), (0.35, 0.55, 0.1)
PRICE_MAX, VOLUME_MAX = 500.0, 310_000_000.0
QUOTES_OF_100 = 115_353
LISTED_LATER = 0.4
"""Share of stocks that are listed later; the others exist from the first day on."""
LEVEL, LEVELS = 18.0, 0.4
"""The median of the levels of prices, and the standard deviation of their logarithms."""
RETURN_TO_LEVEL, SWING = 0.995, 0.025
"""The part of a price's distance from its level that remains the next day, and the standard deviation of a
day's change.
"""
OVERNIGHT, WITHIN_DAY = 0.008, 0.01
VOLUME_OF_FIRST, VOLUME_SWING = 40e6, 0.5

_LETTERS_MAX = SYMBOL_LETTERS[-1]
_PRICE: Mapping[str, Any] = {"kind": "real", "low": 0.0, "high": PRICE_MAX}
ATTRIBUTES: tuple[Mapping[str, Any], ...] = (
    {
        "name": "date",
        "kind": "date",
        "low": float(ordinals.of_date(FIRST_DAY)),
        "high": float(ordinals.of_date(LAST_DAY)),
    },
    {
        "name": "symbol",
        "kind": "string",
        "low": float(ordinals.of_word("aaa", _LETTERS_MAX)),
        "high": float(ordinals.of_word("zzzzz", _LETTERS_MAX)),
        "length": _LETTERS_MAX,
    },
    *({"name": name, **_PRICE} for name in ("open", "high", "low", "close")),
    {"name": "volume", "kind": "integer", "low": 0.0, "high": VOLUME_MAX},
)
_EQUAL, _BETWEEN, _BELOW, _ABOVE = (({"kind": kind},) for kind in ("equal", "between", "below", "above"))
TEMPLATES: tuple[Mapping[str, Any], ...] = (
    {"weight": 20, "ranges": {"symbol": _EQUAL, "open": _BETWEEN}},
    {"weight": 35, "ranges": {"symbol": _EQUAL, "low": _BELOW}},
    {"weight": 35, "ranges": {"symbol": _EQUAL, "high": _ABOVE}},
    {"weight": 5, "ranges": {"symbol": _EQUAL, "volume": _ABOVE}},
    {"weight": 5, "ranges": {"volume": _ABOVE}},
)


def workload(*, uniform: bool, stocks: int = 100, skew: float = 1.0, seed: int = 1) -> dict[str, Any]:
    """Return the attributes, events and templates of a plan's workload.

    uniform: events are drawn uniformly instead of quotes; subscriptions are the same. skew: of the popularity
    of stocks. seed: of the quotes; with the default they are the same in all runs.
    """
    quotes = {"stocks": stocks, "skew": skew, "seed": seed}
    return {
        "attributes": [{**each, "wanted": {"kind": "events"}} for each in ATTRIBUTES],
        "events": {"source": "drawn", "wanted": quotes} if uniform else {"source": "stocks", **quotes},
        "templates": list(TEMPLATES),
    }


@dataclass(frozen=True, slots=True)
class Quotes:
    """Quotes of all stocks. rows: a quote each, in order of time, with a column for each of `ATTRIBUTES`.
    by_stock: the row numbers of each stock, from the most popular stock on; starts, sizes: each stock's part
    of it. popularity: of the stocks, cumulative.
    """

    rows: Floats
    by_stock: Ints
    starts: Ints
    sizes: Ints
    popularity: Floats

    def sample(self, count: int, generator: np.random.Generator) -> Floats:
        """Draw `count` rows: a stock by its popularity, and any of its quotes."""
        drawn = generator.random(count) * self.popularity[-1]
        stock = np.searchsorted(self.popularity[:-1], drawn, side="right")
        place = self.starts[stock] + (generator.random(count) * self.sizes[stock]).astype(np.int64)
        found: Floats = self.rows[self.by_stock[place]]
        return found


@lru_cache(maxsize=2)
def quotes(stocks: int, skew: float, seed: int) -> Quotes:
    """Return the whole stream."""
    generator = np.random.default_rng((seed, stocks))
    days = _weekdays()
    opened, high, low, closed = _prices(len(days), stocks, generator)
    typical = VOLUME_OF_FIRST * np.arange(1, stocks + 1) ** -skew
    volume = typical * np.exp(generator.normal(0, VOLUME_SWING, (len(days), stocks)))
    volume = np.minimum(np.round(volume, -2), VOLUME_MAX)
    there = np.arange(len(days))[:, None] >= _listed(len(days), stocks, generator)
    date, symbol = np.broadcast_arrays(days[:, None], _symbols(stocks, generator))
    columns = (date, symbol, opened, high, low, closed, volume)
    stock = np.broadcast_to(np.arange(stocks), there.shape)[there]
    sizes = np.bincount(stock, minlength=stocks)
    return Quotes(
        np.stack([column[there] for column in columns], axis=1).astype(float),
        by_stock=np.argsort(stock, kind="stable"),
        starts=np.cumsum(sizes) - sizes,
        sizes=sizes,
        popularity=np.cumsum(np.arange(1, stocks + 1) ** -skew),
    )


def _weekdays() -> Ints:
    """Return the ordinals of all weekdays."""
    days = np.arange(np.datetime64(FIRST_DAY), np.datetime64(LAST_DAY) + 1)
    found: Ints = days[np.is_busday(days)].astype(np.int64)
    return found


def _listed(days: int, stocks: int, generator: np.random.Generator) -> Ints:
    """Return the day on which each stock's quotes begin, so that there are as many quotes as in the paper."""
    missing = days * stocks - round(QUOTES_OF_100 / 100 * stocks)
    later = generator.permutation(stocks)[: max(1, int(LISTED_LATER * stocks))]
    weights = generator.random(len(later)) + 0.25
    until = np.concatenate((np.round(np.cumsum(weights) / weights.sum() * missing), [0]))
    found = np.zeros(stocks, np.int64)
    found[later] = np.minimum(np.diff(until, prepend=0)[:-1], days - 1)
    return found


def _symbols(stocks: int, generator: np.random.Generator) -> Floats:
    """Return ordinals of distinct words."""
    found: dict[int, None] = {}
    letters = np.array(list(ordinals.LETTERS))
    while len(found) < stocks:
        length = generator.choice(SYMBOL_LETTERS, p=SYMBOL_SHARES)
        found[ordinals.of_word("".join(generator.choice(letters, length)), _LETTERS_MAX)] = None
    return np.array(list(found), float)


def _prices(days: int, stocks: int, generator: np.random.Generator) -> tuple[Floats, ...]:
    """Return open, high, low and close, in dollars and cents: rows of days, columns of stocks."""
    level = np.log(LEVEL) + generator.normal(0, LEVELS, stocks)
    swings = generator.normal(0, SWING, (days + 1, stocks))
    swings[0] *= (1 - RETURN_TO_LEVEL**2) ** -0.5  # as far from the level as on any day
    for day in range(1, days + 1):
        swings[day] += RETURN_TO_LEVEL * swings[day - 1]
    closed = level + swings
    opened = closed[:-1] + generator.normal(0, OVERNIGHT, (days, stocks))
    closed = closed[1:]
    above, below = np.abs(generator.normal(0, WITHIN_DAY, (2, days, stocks)))
    high, low = np.maximum(opened, closed) + above, np.minimum(opened, closed) - below
    return tuple(np.minimum(np.round(np.exp(each), 2), PRICE_MAX) for each in (opened, high, low, closed))
