"""Keys of events: the workload of the paper's evaluation of collection (5.4).

Popularity by rank: the key of rank k is chosen in proportion to k ** -skew, among `count` keys (Zipf) or
among all positive numbers (Zeta). Insertions bring new keys to a finite set: Poisson arrivals of both kinds,
so that each event is an insertion with the same probability; a new key takes a rank that is drawn from the
Zeta distribution, and the following ones are moved down by one. So old keys become less popular.

Interpretation (checklist): lambda is the number of invalidations for each insertion; unbounded keys are drawn
directly from Zeta, without insertions; savings depend on the number of events, which must be stated. A tick
(Fig. 9) is the mean time between two insertions. An insertion is an event with the new key.

The generator is NumPy's, seeded from the injected one: the same seed gives the same keys.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from node.core import machine as m

KEY_BYTES = 8
SEED_MAX = 1 << 62
FIRST_KEYS_DRAWN = 1024  # cumulative weights are computed for twice the number of keys needed

Ranks = NDArray[np.int64]


class Popularity:
    """Ranks by popularity, drawn from a set of keys that may grow."""

    def __init__(self, skew: float) -> None:
        self._skew = skew
        self._cumulative = np.cumsum(np.arange(1, FIRST_KEYS_DRAWN + 1) ** -skew)

    def ranks(self, uniform: NDArray[np.float64], counts: Ranks) -> Ranks:
        """Draw ranks from 1 on, one for each uniform number, each among the number of keys in `counts`."""
        if not len(counts):
            return np.zeros(0, np.int64)
        most = int(counts.max())
        if most > len(self._cumulative):
            weights = np.arange(1, 2 * most + 1) ** -self._skew
            self._cumulative = np.cumsum(weights)
        totals = self._cumulative[counts - 1]
        return np.minimum(np.searchsorted(self._cumulative, uniform * totals) + 1, counts)


class KeyDraws:
    """The keys of one driver's events, in sequence."""

    def __init__(
        self,
        distribution: Literal["zipf", "zeta", "uniform"],
        skew: float,
        count: int,
        insertions: float,
        rng: m.Randomness,
    ) -> None:
        """Create the keys. `count`: initial number. `insertions`: share of events that bring a new key."""
        self._distribution = distribution
        self._skew = skew
        self._count = count
        self._insertions = insertions if distribution != "zeta" else 0.0
        self._random = np.random.Generator(np.random.PCG64(rng.randrange(SEED_MAX)))
        self._popularity = Popularity(skew if distribution == "zipf" else 0.0)
        self._unpopular: list[int] = []  # keys, the most popular one last, so that insertions are cheap
        if self._insertions:
            self._unpopular = list(range(count, 0, -1))

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any], rng: m.Randomness) -> "KeyDraws":
        """Create the keys from a workload's `keys`."""
        return cls(given["distribution"], given["skew"], given["count"], given["insertions"], rng)

    def draw(self, count: int) -> NDArray[np.int64]:
        """Draw the keys of the next events, as numbers from 1 on."""
        if self._distribution == "zeta":
            return self._random.zipf(self._skew, count)
        inserted = self._random.random(count) < self._insertions
        uniform = self._random.random(count)
        if not self._insertions:
            return self._popularity.ranks(uniform, np.full(count, self._count))
        counts = len(self._unpopular) + np.cumsum(inserted) - inserted
        ranks = self._popularity.ranks(uniform, counts)
        ranks[inserted] = zeta_ranks(self._random, self._skew, counts[inserted] + 1)
        return self._in_turn(ranks.tolist(), inserted)

    def draw_bytes(self, count: int) -> list[bytes]:
        """Draw the keys of the next events, as the first bytes of an event."""
        joined = self.draw(count).astype(">i8").tobytes()
        return [joined[start : start + KEY_BYTES] for start in range(0, len(joined), KEY_BYTES)]

    def _in_turn(self, ranks: list[int], inserted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Convert ranks to keys; each insertion changes the ranks of later events."""
        keys, ranked = [], self._unpopular
        for rank, is_new in zip(ranks, inserted.tolist(), strict=True):
            if is_new:
                self._count += 1
                ranked.insert(len(ranked) + 1 - rank, self._count)
            keys.append(ranked[-rank])
        return np.array(keys, np.int64)


def zeta_ranks(random: np.random.Generator, skew: float, most: Ranks) -> Ranks:
    """Draw the ranks of new keys (5.4): Zeta, or the last present rank."""
    if skew <= 1:  # Zeta is undefined: use a uniform rank
        return (random.random(len(most)) * most).astype(np.int64) + 1
    return np.minimum(random.zipf(skew, len(most)), most)


def invalidations_by_age(skew: float, per_insertion: float, ticks: int, rng: m.Randomness) -> Ranks:
    """Count invalidations by the age of their key in ticks (the index), for Figure 9.

    One key is inserted in each tick, at a rank from the Zeta distribution; then a Poisson number of keys is
    invalidated, `per_insertion` (lambda) on average, by the popularity of the present keys.
    """
    random = np.random.Generator(np.random.PCG64(rng.randrange(SEED_MAX)))
    popularity = Popularity(skew)
    inserted: list[int] = []  # insertion tick of each key, the most popular one last
    places = zeta_ranks(random, skew, np.arange(1, ticks + 1)).tolist()
    numbers = random.poisson(per_insertion, ticks)
    counts = np.repeat(np.arange(1, ticks + 1), numbers)
    ranks = popularity.ranks(random.random(len(counts)), counts).tolist()
    found, ages = iter(ranks), np.zeros(ticks, np.int64)
    for tick, (place, number) in enumerate(zip(places, numbers.tolist(), strict=True)):
        inserted.insert(len(inserted) + 1 - place, tick)
        for _, rank in zip(range(number), found, strict=False):
            ages[tick - inserted[-rank]] += 1
    return ages
