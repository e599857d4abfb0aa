"""Sweeps: the values to try for fields of an experiment, and their combinations.

A sweep is checked when its experiment is read: each value by itself must give a valid experiment.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from topologies.strict import problem

POINTS_MAX = 10_000
RUNS_MAX = 20_000
"""Limit of combinations times repetitions: all are in memory, and each step writes the record again."""
VARIANTS_MAX = 100
VARIANT = "variant"
"""The name of the axis of `variants`; its values are their names."""
OF_MANY_RUNS = ("sweep", "variants", "repeat", "expect_sweep")
"""The fields of an experiment that concern several runs; a single run ignores them."""


def axes(sweep: Mapping[str, Sequence[Any]], variants: Iterable[str]) -> dict[str, list[Any]]:
    """Return the swept axes: named variants, if any, then the values of each field."""
    names: list[Any] = list(variants)
    return {**({VARIANT: names} if names else {}), **{path: list(values) for path, values in sweep.items()}}


def points(sweep: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the combinations, each a value per path; the last path varies fastest. No sweep is one point."""
    return [dict(zip(sweep, values, strict=True)) for values in itertools.product(*sweep.values())]


def values_text(values: Mapping[str, Any]) -> str:
    """Return `topology=two-regions roles.driver=4`, as for `--set`."""
    return " ".join(f"{path}={value_text(value)}" for path, value in values.items())


def value_text(value: Any) -> str:
    """Return a value in the form of `--set path=`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {value_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(value_text(item) for item in value) + "]"
    return "null" if value is None else str(value)


def refuse_unusable(sweep: Mapping[str, Sequence[Any]]) -> None:
    """Raise a problem if an axis is empty or not sweepable, or if there are too many combinations."""
    for path, values in sweep.items():
        if not values:
            raise problem("has no values to try", path)
        if path.split(".")[0] in (*OF_MANY_RUNS, VARIANT, "name", "seed", "on"):
            raise problem("cannot be swept", path)
    if math.prod(len(values) for values in sweep.values()) > POINTS_MAX:
        raise problem(f"makes more than {POINTS_MAX} combinations")


def too_many(axes: Mapping[str, Sequence[Any]], repeat: int) -> str | None:
    """Return a problem if there are too many runs, without computing the combinations, or None."""
    count = math.prod(len(values) for values in axes.values()) * repeat
    return f"makes {count:,} runs, more than {RUNS_MAX:,}" if count > RUNS_MAX else None


def refuse_unusable_variants(variants: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise a problem if a variant sets a field that belongs to all runs."""
    for name, settings in variants.items():
        for path in settings:
            if path.split(".")[0] in (*OF_MANY_RUNS, "name", "seed", "on"):
                raise problem("belongs to all variants", name, path)
