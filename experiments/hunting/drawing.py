"""The case of a seed. Pure: the same base and seed give the same case.

Each seed draws from only a few kinds of disturbance and a few settings (swarm testing: Groce et al., 2012),
because one kind may hide a defect that another reveals.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from experiments.hunting.case import HuntCase, Kind, by_time
from experiments.hunting.networks import DRAWN, random_network, random_pair
from experiments.hunting.placement import ANYWHERE, DisturbancePlace, draw, ended_servers, thinning_cuts
from experiments.hunting.settings import (
    cost_settings,
    halved_periods,
    late_subscriptions,
    server_counts,
    shortened_long_periods,
    small_limits,
)
from experiments.hunting.targets import HuntTargets, hunt_targets
from experiments.model import Experiment
from experiments.nemesis import Nemesis
from topologies.errors import InputError

ATTEMPTS = 40  # to find possible settings
COUNTS = (1, 2, 3, 4, 5, 6, 8, 8, 11, 14)
CHEAPLY = 0.98
"""Probability that a setting that determines a run's cost is drawn, mostly low: many short runs with few
events and processes find more than a few large ones.
"""
LEAST_OF = 3
"""Values drawn for such a setting; the first in its list, which costs least, is taken."""
TOPOLOGY = "topology"
ELSEWHERE = 0.6
"""Least probability of another topology."""
SMALLEST = 0.7
"""Probability that a named topology has two regions: without a third, no other region hides an error of one
of the two, and a run costs little. The regions have some delay between them, since events interleave only in
time.
"""
HASTY = 0.2
"""Probability that all periods are half as long: a short run then has room for several periods in sequence.
"""
MORE_SERVERS = 0.4
"""Probability that counts of servers are drawn: several in few regions cost less than as many regions."""
SOONER = 0.2
"""Probability that long periods are short."""
PRESSED = 0.15
"""Probability that all limits are small together."""
MEANWHILE = 0.5
"""Probability that subscribers also subscribe during disturbances."""
PLAIN: tuple[Kind, ...] = ("cut", "crash", "separate", "pause")
"""Partial partitions and single processes: sequences of several of them are rare among all kinds."""
PLAINLY = 0.35
"""Probability that there are only plain kinds."""
PLAIN_WEIGHT = 3
"""Weight of a plain kind among all; the others have 1."""
IN_ONE_REGION = 0.3
"""Probability that all disturbances of a case are in one region and its links."""
THINNED = 0.15
"""Probability that links are cut until the rest is a spanning tree."""
ENDED = 0.15
"""Probability that several servers end at once, up to as many as their system must survive: the successor of
the first may be among them.
"""


class CaseGenerator:
    """Draws cases. knobs: those of `drawn_settings`."""

    def __init__(self, base: Experiment, nemesis: Nemesis, knobs: Mapping[str, Sequence[Any]]) -> None:
        self._base, self._nemesis, self._knobs = base, nemesis, knobs
        self._costly = cost_settings(base)
        self._servers = server_counts(base)
        self._together = (
            (late_subscriptions(base, nemesis), MEANWHILE),
            (halved_periods(base, nemesis), HASTY),
            (shortened_long_periods(base, nemesis), SOONER),
            (small_limits(base, nemesis), PRESSED),
        )

    def case(self, seed: int) -> HuntCase:
        """Return the case of a seed."""
        rng = Random(f"hunt {seed}")  # noqa: S311  reproducible, not secret
        targets, settings = self._targets(rng)
        if not targets.kinds:  # no disturbance is possible: vary only settings and sizes
            return HuntCase(rng.randrange(1 << 32), settings, ())
        kinds = _few(rng, targets.kinds)
        place = ANYWHERE
        if rng.random() < IN_ONE_REGION:
            place = DisturbancePlace(frozenset({rng.choice(list(targets.of_region))}))
        disturbances = thinning_cuts(rng, targets, ()) if "cut" in kinds and rng.random() < THINNED else []
        disturbances += ended_servers(rng, targets, disturbances) if rng.random() < ENDED else []
        for _ in range(rng.choice(COUNTS)):
            found = draw(rng, targets, kinds, disturbances, place)
            if found is not None:
                disturbances.append(found)
        return HuntCase(rng.randrange(1 << 32), settings, by_time(disturbances))

    def targets(self, settings: Mapping[str, Any]) -> HuntTargets:
        """Return the targets of cases with these settings. Raises InputError."""
        return hunt_targets(self._base, settings, self._nemesis)

    def settings(self, rng: Random) -> dict[str, Any]:
        """Draw some settings, which may be impossible together."""
        varied = [path for path in self._knobs if path in self._nemesis.vary and rng.random() < 0.8]
        others = [path for path in self._knobs if path not in self._nemesis.vary]
        few = rng.sample(others, min(len(others), rng.choice((0, 0, 1, 2, 3, 5))))
        few += [path for path in self._costly if path in self._knobs and rng.random() < CHEAPLY]
        few += [path for path in self._servers if path in self._knobs and rng.random() < MORE_SERVERS]
        few += [TOPOLOGY] if TOPOLOGY in self._knobs and rng.random() < ELSEWHERE else []
        found = {path: self._value(rng, path) for path in sorted({*varied, *few}, key=_outermost)}
        for together, often in self._together:
            if together and rng.random() < often:
                found |= rng.choice(together)
        return {path: found[path] for path in sorted(found, key=_outermost)}

    def _value(self, rng: Random, path: str) -> Any:
        values = self._knobs[path]
        if path == TOPOLOGY:
            return _topology(rng, values)
        return values[min(rng.randrange(len(values)) for _ in range(LEAST_OF if path in self._costly else 1))]

    def _targets(self, rng: Random) -> tuple[HuntTargets, dict[str, Any]]:
        for _ in range(ATTEMPTS):
            settings = self.settings(rng)
            try:
                return self.targets(settings), settings
            except InputError:
                continue  # impossible together: draw others
        return self.targets({}), {}


def _topology(rng: Random, names: Sequence[str]) -> Any:
    if rng.random() < DRAWN:
        return random_network(rng)
    return random_pair(rng) if rng.random() < SMALLEST else rng.choice(names)


def _outermost(path: str) -> tuple[int, str]:
    """Sort key that puts whole sections before their fields."""
    return path.count("."), path


def _few(rng: Random, kinds: Sequence[Kind]) -> list[Kind]:
    """Draw one to five kinds by weight (Efraimidis and Spirakis, 2006), or a few plain ones."""
    plain = [kind for kind in PLAIN if kind in kinds]
    if len(plain) > 1 and rng.random() < PLAINLY:
        return rng.sample(plain, rng.randint(2, len(plain)))
    heads = {kind: rng.random() ** (1 / (PLAIN_WEIGHT if kind in PLAIN else 1)) for kind in kinds}
    return sorted(kinds, key=lambda kind: -heads[kind])[: rng.randint(1, min(5, len(kinds)))]
