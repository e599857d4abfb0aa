"""Sweeps: every combination of the values to try for some fields, each repeated with seeds of its own.

A sweep is checked when its experiment is read: each value must make a valid experiment by itself.
"""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topologies.strict import problem

POINTS_MAX = 10_000
OF_MANY_RUNS = ("sweep", "repeat", "expect_sweep")
"""The fields of an experiment that are about many runs of it: a single one goes without them."""
VALUES_TEXT_MAX = 60


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run of a sweep: a combination of values, with one repetition's seed."""

    name: str  # "03-driver-4-r0": also its directory's
    number: int  # of the combination, from 1
    values: Mapping[str, Any]  # by dotted path
    repetition: int  # from 0
    seed: int


def points(sweep: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The combinations, each a value for every path; the last path varies fastest. No sweep is one point."""
    return [dict(zip(sweep, values, strict=True)) for values in itertools.product(*sweep.values())]


def runs(sweep: Mapping[str, Sequence[Any]], repeat: int, seed: int) -> list[SweepRun]:
    """All runs, in their order: first every combination once, then every one again.

    seed: of the first repetition; each further one has the next.
    """
    combinations = points(sweep)
    width, repetition_width = len(str(len(combinations))), len(str(repeat - 1))

    def name(number: int, values: Mapping[str, Any], repetition: int) -> str:
        parts = (f"{number:0{width}}", _slug(values), f"r{repetition:0{repetition_width}}")
        return "-".join(filter(None, parts))

    return [
        SweepRun(name(number, values, repetition), number, values, repetition, seed + repetition)
        for repetition in range(repeat)
        for number, values in enumerate(combinations, 1)
    ]


def values_text(values: Mapping[str, Any]) -> str:
    """`topology=two-regions roles.driver=4`, as after `--set`."""
    return " ".join(f"{path}={value_text(value)}" for path, value in values.items())


def value_text(value: Any) -> str:
    """A value as it would be written after `--set path=`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {value_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(value_text(item) for item in value) + "]"
    return "null" if value is None else str(value)


def refuse_unusable(sweep: Mapping[str, Sequence[Any]]) -> None:
    """Raise a problem if there is nothing to try or far too much, or if it would sweep the sweep."""
    for path, values in sweep.items():
        if not values:
            raise problem("has no values to try", path)
        if path.split(".")[0] in ("sweep", "expect_sweep", "repeat", "name", "seed", "on"):
            raise problem("cannot be swept", path)
    if math.prod(len(values) for values in sweep.values()) > POINTS_MAX:
        raise problem(f"makes more than {POINTS_MAX} combinations")


def _slug(values: Mapping[str, Any]) -> str:
    """`driver-4-rate-5000-s`: of use to a person who looks for a run; the number alone tells runs apart."""
    text = "-".join(f"{path.split('.')[-1]}-{value_text(value)}" for path, value in values.items())
    return re.sub(r"[^A-Za-z0-9.]+", "-", text)[:VALUES_TEXT_MAX].strip("-.")
