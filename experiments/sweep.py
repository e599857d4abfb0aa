"""Sweeps: every combination of the values to try for some fields.

A sweep is checked when its experiment is read: each value must make a valid experiment by itself.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from topologies.strict import problem

POINTS_MAX = 10_000


def points(sweep: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The combinations, each a value for every path; the last path varies fastest. No sweep is one point."""
    return [dict(zip(sweep, values, strict=True)) for values in itertools.product(*sweep.values())]


def refuse_unusable(sweep: Mapping[str, Sequence[Any]]) -> None:
    """Raise a problem if there is nothing to try or far too much, or if it would sweep the sweep."""
    for path, values in sweep.items():
        if not values:
            raise problem("has no values to try", path)
        if path.split(".")[0] in ("sweep", "repeat", "name"):
            raise problem("cannot be swept", path)
    if math.prod(len(values) for values in sweep.values()) > POINTS_MAX:
        raise problem(f"makes more than {POINTS_MAX} combinations")
