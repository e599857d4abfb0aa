"""Distributions of a link's jitter, each as a table of quantiles of the deviation, in parts of the jitter.

The jitter is the largest deviation from the delay, whatever its distribution. A table has evenly spaced
quantiles from 0 to 1, between which deviations are interpolated. Without a table they are uniform, -1 to 1.

- `normal`: the standard deviation is a quarter of the jitter.
- `pareto`: of shape 3, as in iproute2's table of that name (tc-netem(8)), scaled from its four standard
  deviations to the jitter. Few packets are much later than the delay; none is earlier by more than a sixth of
  the jitter.
- A measured one comes from a file (`topologies.trace_files`), which also gives the jitter.

The relay imports this module, so it needs only the standard library.
"""

from collections.abc import Sequence
from functools import cache
from statistics import NormalDist

POINTS = 257
UNIFORM, NORMAL, PARETO = "uniform", "normal", "pareto"
NAMES = (UNIFORM, NORMAL, PARETO)
_SIGMAS, _SHAPE, _MEAN = 4, 3.0, 1.5

Quantiles = tuple[float, ...]


@cache
def named_quantiles(name: str) -> Quantiles:
    """Return the quantiles of a distribution of `NAMES`; none of the uniform one."""
    steps = range(1, POINTS - 1)
    match name:
        case "normal":
            inner = (NormalDist(0, 1 / _SIGMAS).inv_cdf(step / (POINTS - 1)) for step in steps)
            return (-1.0, *inner, 1.0)
        case "pareto":
            drawn = [1.0, *((1 - step / (POINTS - 1)) ** (-1 / _SHAPE) for step in steps)]
            return (*(min(1.0, (each - _MEAN) * 4 / 3 / _SIGMAS) for each in drawn), 1.0)
    return ()


def deviation(quantiles: Sequence[float], drawn: float) -> float:
    """Return the deviation, -1 to 1, for a uniform draw from 0 to 1."""
    if not quantiles:
        return 2 * drawn - 1
    place = drawn * (len(quantiles) - 1)
    below = min(int(place), len(quantiles) - 2)
    return quantiles[below] + (place - below) * (quantiles[below + 1] - quantiles[below])
