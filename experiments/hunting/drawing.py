"""The case that a seed means. Pure: the same ground and seed give the same case.

Each seed draws from a few kinds of disturbance and a few settings only (swarm testing: Groce et al., 2012):
what one kind hides another shows.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from experiments.hunting.case import Case, Kind, by_time
from experiments.hunting.ground import Ground, ground_of
from experiments.hunting.knobs import costly, hasty, meanwhile, pressed, servers, sooner
from experiments.hunting.networks import DRAWN, network, pair
from experiments.hunting.placing import ANYWHERE, Place, draw, ended, thinned
from experiments.model import Experiment
from experiments.nemesis import Nemesis
from topologies.errors import InputError

ATTEMPTS = 40  # to find settings that are possible
COUNTS = (1, 2, 3, 4, 5, 6, 8, 8, 11, 14)
CHEAPLY = 0.98
"""How often settings that decide what a run costs are drawn, mostly for little: many short runs with few
events and processes find more than a few large ones.
"""
LEAST_OF = 3
"""Of so many values that are drawn the first, which costs least, is taken."""
TOPOLOGY = "topology"
ELSEWHERE = 0.6
"""How often the topology is another one, at least."""
SMALLEST = 0.7
"""How often one that is not drawn at large is of two regions: where there is no third, nobody makes up for
what one of two does wrong, and a run costs little. Some way apart, since in no time nothing gets in between.
"""
HASTY = 0.2
"""How often all periods are half as long: a short run then has room for what takes several, one after the
other.
"""
MORE_SERVERS = 0.4
"""How often counts of servers are drawn: several in few regions cost less than as many regions."""
SOONER = 0.2
"""How often long periods are short."""
PRESSED = 0.15
"""How often all limits are small together."""
MEANWHILE = 0.5
"""How often subscribers also subscribe while things are disturbed."""
PLAIN: tuple[Kind, ...] = ("cut", "crash", "separate", "pause")
"""Partial partitions and single processes: what takes several of them is drawn seldom among all others."""
PLAINLY = 0.35
"""How often there is nothing else."""
PLAIN_WEIGHT = 3
"""Of these among all kinds; the others have 1."""
IN_ONE_REGION = 0.3
"""How often all disturbances of a case are of one region and its links."""
THINNED = 0.15
"""How often links are cut so that others only just connect all regions: each reaches some of the others, and
few or none reach all.
"""
ENDED = 0.15
"""How often several servers end at once, up to as many as their system is to survive: who would have taken
over from the first is among them.
"""


class Drawing:
    """Draws cases. knobs: of `knobs_of`."""

    def __init__(self, base: Experiment, nemesis: Nemesis, knobs: Mapping[str, Sequence[Any]]) -> None:
        self._base, self._nemesis, self._knobs = base, nemesis, knobs
        self._costly = costly(base)
        self._servers = servers(base)
        self._together = (
            (meanwhile(base, nemesis), MEANWHILE),
            (hasty(base, nemesis), HASTY),
            (sooner(base, nemesis), SOONER),
            (pressed(base, nemesis), PRESSED),
        )

    def case(self, seed: int) -> Case:
        """The case of a seed."""
        rng = Random(f"hunt {seed}")  # noqa: S311  to be replayed, not to be kept secret
        ground, settings = self._ground(rng)
        if not ground.kinds:  # settings and sizes are all that can be tried
            return Case(rng.randrange(1 << 32), settings, ())
        kinds = _few(rng, ground.kinds)
        place = ANYWHERE
        if rng.random() < IN_ONE_REGION:
            place = Place(frozenset({rng.choice(list(ground.of_region))}))
        disturbances = thinned(rng, ground, ()) if "cut" in kinds and rng.random() < THINNED else []
        disturbances += ended(rng, ground, disturbances) if rng.random() < ENDED else []
        for _ in range(rng.choice(COUNTS)):
            found = draw(rng, ground, kinds, disturbances, place)
            if found is not None:
                disturbances.append(found)
        return Case(rng.randrange(1 << 32), settings, by_time(disturbances))

    def ground(self, settings: Mapping[str, Any]) -> Ground:
        """What cases with these settings stand on. Raises InputError."""
        return ground_of(self._base, settings, self._nemesis)

    def settings(self, rng: Random) -> dict[str, Any]:
        """Some settings, which may be impossible together."""
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

    def _ground(self, rng: Random) -> tuple[Ground, dict[str, Any]]:
        for _ in range(ATTEMPTS):
            settings = self.settings(rng)
            try:
                return self.ground(settings), settings
            except InputError:
                continue  # these settings do not go together: other ones
        return self.ground({}), {}


def _topology(rng: Random, names: Sequence[str]) -> Any:
    if rng.random() < DRAWN:
        return network(rng)
    return pair(rng) if rng.random() < SMALLEST else rng.choice(names)


def _outermost(path: str) -> tuple[int, str]:
    """Whole sections before their fields."""
    return path.count("."), path


def _few(rng: Random, kinds: Sequence[Kind]) -> list[Kind]:
    """From one to five kinds, by their weights (Efraimidis and Spirakis, 2006); or a few plain ones."""
    plain = [kind for kind in PLAIN if kind in kinds]
    if len(plain) > 1 and rng.random() < PLAINLY:
        return rng.sample(plain, rng.randint(2, len(plain)))
    heads = {kind: rng.random() ** (1 / (PLAIN_WEIGHT if kind in PLAIN else 1)) for kind in kinds}
    return sorted(kinds, key=lambda kind: -heads[kind])[: rng.randint(1, min(5, len(kinds)))]
