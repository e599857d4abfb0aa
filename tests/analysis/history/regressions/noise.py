"""Simulated nights with the noise of real testbeds, from a seed: the medians of a metric without a change,
and with a planted one.

Three kinds, after repeated runs on this testbed: throughput varies little, latency more and mostly upwards,
and recovery most, since it depends on the phase of a period at which the link failed. On top of it every kind
has nights when the machine was busy (a factor for all runs of the night) and runs that are far off.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from analysis.history.regressions.series import Nights

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Kind:
    """A metric's noise. night, run: standard deviations of a night's and a run's logarithm. tail: degrees of
    freedom of a run's t distribution. far: how many of the runs are far off, worse by 1.2 to 2 times.
    neighbours: how much a night resembles the one before."""

    name: str
    level: float
    worse: int
    night: float
    run: float
    tail: float
    far: float
    neighbours: float = 0.2


KINDS: Final = (
    Kind("throughput", 80_000.0, -1, 0.006, 0.010, 5, 0.005),
    Kind("latency", 54.0, 1, 0.015, 0.030, 4, 0.01),
    Kind("recovery", 0.71, 1, 0.02, 0.08, 5, 0.02),
)


def nights(
    kind: Kind,
    count: int,
    rng: np.random.Generator,
    *,
    repeat: int = 3,
    worse_from: int | None = None,
    fraction: float = 0.0,
) -> Nights:
    """Return `count` nights of `repeat` runs each, worse by `fraction` from `worse_from` on."""
    shared = np.zeros(count)
    drawn = rng.normal(0, kind.night * np.sqrt(1 - kind.neighbours**2), count)
    for night in range(count):
        shared[night] = drawn[night] + (kind.neighbours * shared[night - 1] if night else 0.0)
    spread = kind.run * np.sqrt((kind.tail - 2) / kind.tail)
    logs = shared[:, None] + spread * rng.standard_t(kind.tail, (count, repeat))
    far = rng.random((count, repeat)) < kind.far
    logs += far * kind.worse * np.log(rng.uniform(1.2, 2.0, (count, repeat)))
    values = kind.level * np.exp(logs)
    if worse_from is not None:
        values[worse_from:] *= 1 + kind.worse * fraction
    return Nights(np.median(values, axis=1), values.min(axis=1), values.max(axis=1), np.full(count, repeat))


def until(night: int, nights: Nights) -> Nights:
    """Return the data of the first nights."""
    return Nights(nights.medians[:night], nights.lowest[:night], nights.highest[:night], nights.runs[:night])
