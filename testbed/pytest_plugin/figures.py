"""Summaries of runs as attributes: `run.recovery.cut.switch_s.p95`.

A `SummarySection` is a part of the summaries of one or more runs of the same experiment; `Figures` are the
values at one place of them, one per run. Missing values are never skipped: a comparison with one is false,
and a statistic over one raises NotMeasuredError.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NoReturn

import numpy as np

from experiments.expectations import found_text
from topologies.strict import suggestion

FAULTS = "recovery"
"""The section of summary.json that has a section for each fault."""

__tracebackhide__ = True  # pytest shows a failure at the line of the test, not here

ABSENT = object()
SHOWN_MAX = 12


class NotMeasuredError(AssertionError):
    """A statistic was requested over figures that a run lacks."""


@dataclass(frozen=True, slots=True)
class FigureSource:
    """The run of a value. run: its name. invalid: its numbers are not valid."""

    run: str
    invalid: bool = False


class Figures:
    """The values of runs at one place of their summaries, in the order of the runs.

    Comparisons are with a single value. A comparison is true if it is true for every run; it is false if a
    run has no value.
    """

    __hash__ = None  # type: ignore[assignment]  # it equals values of other types

    def __init__(self, path: str, values: Sequence[tuple[FigureSource, Any]]) -> None:
        self._path = path
        self._values = tuple(values)

    @property
    def all(self) -> tuple[Any, ...]:
        """The values; None for each run without one."""
        return tuple(value for _, value in self._values)

    @property
    def value(self) -> Any:
        """The value of a single run. Raises NotMeasuredError, and TypeError if there are several runs."""
        if len(self._values) != 1:
            self._refuse("are several: use .p50 or .max")
        return self.measured[0]

    @property
    def measured(self) -> tuple[Any, ...]:
        """The values. Raises NotMeasuredError if a run has none."""
        missing = [source.run for source, value in self._values if value is None]
        if missing:
            raise NotMeasuredError(f"{self._path} was not measured in {', '.join(missing)}")
        return self.all

    @property
    def min(self) -> float:
        """The smallest value. Raises NotMeasuredError, as all statistics do."""
        return min(self._numbers())

    @property
    def max(self) -> float:
        """The largest value."""
        return max(self._numbers())

    @property
    def mean(self) -> float:
        """The arithmetic mean."""
        return fmean(self._numbers())

    @property
    def p50(self) -> float:
        """The median."""
        return self.percentile(50)

    @property
    def p90(self) -> float:
        """The 90th percentile; see `percentile`."""
        return self.percentile(90)

    @property
    def p95(self) -> float:
        """The 95th percentile; see `percentile`."""
        return self.percentile(95)

    @property
    def p99(self) -> float:
        """The 99th percentile; see `percentile`."""
        return self.percentile(99)

    def percentile(self, percent: float) -> float:
        """Return a percentile, interpolated between the nearest two values. percent: 0 to 100."""
        return float(np.percentile(self._numbers(), percent))

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.all)

    def __getitem__(self, number: int) -> Any:
        return self.all[number]

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        if not all(isinstance(value, bool) for value in self.measured):
            self._refuse("are neither true nor false: compare them")
        return all(self.all)

    def __eq__(self, other: object) -> bool:
        return self._each(operator.eq, other)

    def __ne__(self, other: object) -> bool:
        return self._each(operator.ne, other)

    def __lt__(self, other: object) -> bool:
        return self._each(operator.lt, other)

    def __le__(self, other: object) -> bool:
        return self._each(operator.le, other)

    def __gt__(self, other: object) -> bool:
        return self._each(operator.gt, other)

    def __ge__(self, other: object) -> bool:
        return self._each(operator.ge, other)

    def __repr__(self) -> str:
        shown = [found_text(value) for value in self.all[:SHOWN_MAX]]
        more = [f"… {len(self._values) - SHOWN_MAX} more"] if len(self._values) > SHOWN_MAX else []
        doubt = " (of an invalid run)" if any(source.invalid for source, _ in self._values) else ""
        return f"<{self._path}: {', '.join(shown + more)}{doubt}>"

    def _each(self, compare: Callable[[Any, Any], bool], other: object) -> bool:
        if isinstance(other, Figures):
            self._refuse("compare with one value: use .p50, .max or .all of both")
        return all(value is not None and compare(value, other) for value in self.all)

    def _numbers(self) -> list[float]:
        if not all(isinstance(value, int | float) for value in self.measured):
            self._refuse("are not numbers")
        return list(self.all)

    def _refuse(self, why: str) -> NoReturn:
        raise TypeError(f"{self!r} {why}")


class SummarySection:
    """A part of the summaries: its parts are attributes, or items if a name is no Python identifier.

    Items of lists are found by their `name` or `link`. `recovery` also has the figures of its faults:
    `recovery.switch_s` are the values of every fault that has them, in every run.
    """

    def __init__(self, path: str, nodes: Sequence[tuple[FigureSource, Any]]) -> None:
        self._path = path
        self._nodes = tuple(nodes)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._part(name)

    def __getitem__(self, name: str) -> Any:
        """Return a part by its name, which may contain dots, or a deeper one by its dotted path."""
        if name in set(self):
            return self._part(name)
        first, dot, rest = name.partition(".")
        try:
            found: Any = self._part(first)
        except AttributeError as error:
            raise KeyError(str(error)) from None
        return found[rest] if dot else found

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of its parts."""
        return iter(dict.fromkeys(name for _, node in self._nodes for name in _names(node)))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"<{self._path}>"

    def _part(self, name: str) -> "SummarySection | Figures":
        path = f"{self._path}.{name}" if self._path else name
        found = [(source, _child(node, name)) for source, node in self._nodes]
        if all(part is ABSENT for _, part in found):
            return self._of_every_fault(name)
        there = [part for _, part in found if part is not ABSENT and part is not None]
        if there and all(_is_section(part) for part in there):
            return SummarySection(path, [(source, {} if part is ABSENT else part) for source, part in found])
        return Figures(path, [(source, None if part is ABSENT else part) for source, part in found])

    def _of_every_fault(self, name: str) -> Figures:
        values = [
            (source, fault[name])
            for source, node in self._nodes
            if self._path == FAULTS and isinstance(node, Mapping)
            for fault in node.values()
            if isinstance(fault, Mapping) and name in fault
        ]
        if not values:
            hint = suggestion(name, self)
            raise AttributeError(f"{self._path or 'the summary'} has no {name}{hint}")
        return Figures(f"{FAULTS}.*.{name}", values)


def _child(node: Any, name: str) -> Any:
    if isinstance(node, Mapping):
        return node.get(name, ABSENT)
    return next((item for item in node or () if name in (item.get("name"), item.get("link"))), ABSENT)


def _is_section(node: Any) -> bool:
    """Return whether a node has parts; lists of plain values, such as reasons, are values."""
    listed = isinstance(node, list) and node and all(isinstance(item, Mapping) for item in node)
    return isinstance(node, Mapping) or bool(listed)


def _names(node: Any) -> list[str]:
    if isinstance(node, Mapping):
        return list(node)
    return [str(item.get("name", item.get("link"))) for item in node or ()]
