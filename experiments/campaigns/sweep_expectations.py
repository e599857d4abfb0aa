"""Expectations of a sweep: `median(latency.mean_ms) by topology <= 20`, evaluated on all its runs' results.

The left side of the comparison is one of

    median(latency.mean_ms)                                     a statistic of a figure of summary.json
    median(latency.mean_ms where roles.client=9)                the same for some of the runs
    max(latency.p99_ms where x=1) / max(latency.p99_ms where x=2)
    argmin(parameters.fanout, median(latency.mean_ms))          the swept value with the least statistic

and `by PATH, PATH` after it makes one comparison for each combination of values of swept fields; all must
hold. If one of the runs lacks the figure, the statistic is unknown and the expectation does not hold.
"""

import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

from experiments.campaigns.sweep import value_text
from experiments.expectations import (
    NUMBER,
    OPERATORS,
    TEXT_MAX,
    number,
    number_of,
    value_at,
    written_as_text,
)
from experiments.records.summary import path_problem
from experiments.records.validated_json import Text
from topologies.strict import suggestion

EXAMPLE = "median(latency.mean_ms) by topology <= 20"


def _quantile(percent: int) -> Callable[[Sequence[float]], float]:
    """Return the nearest-rank percentile, which is one of the measured values."""
    return lambda values: sorted(values)[max(0, math.ceil(percent / 100 * len(values)) - 1)]


STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "mean": statistics.fmean,
    "median": statistics.median,
    "p90": _quantile(90),
    "p95": _quantile(95),
    "p99": _quantile(99),
    "sum": math.fsum,
}
BEST: dict[str, Callable[[Iterable[float]], float]] = {"argmin": min, "argmax": max}

_PATH = r"[A-Za-z_][\w-]*(?:\.[\w-]+)*"
_CONDITION = rf"{_PATH}\s*=\s*[^\s=(),]+"
_WHERE = rf"\s+where\s+({_CONDITION}(?:\s+and\s+{_CONDITION})*)"
_STATISTIC = rf"([a-z]\w*)\(\s*({_PATH})(?:{_WHERE})?\s*\)"
_BY = rf"(?:\s+by\s+(?P<by>{_PATH}(?:\s*,\s*{_PATH})*))?"
WRITTEN = re.compile(
    rf"(?P<left>[^<>!]+?){_BY}\s*(?P<operator><=|>=|==|!=|<|>)\s*(?P<value>[^\s<>=!]+)", re.ASCII
)
_OF_RUNS = re.compile(_STATISTIC, re.ASCII)
_RATIO = re.compile(rf"(?P<over>{_STATISTIC})\s*/\s*(?P<under>{_STATISTIC})", re.ASCII)
_ALONG = re.compile(
    rf"(?P<best>argmin|argmax)\(\s*(?P<path>{_PATH})\s*,\s*(?P<of>{_STATISTIC})\s*\)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one run of a sweep. values: of the swept fields, by path. summary: from summary.json."""

    values: Mapping[str, Any]
    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GroupJudgement:
    """The result for a group of runs. of: `topology=ring-6`. value: None if unknown."""

    value: int | float | Text | None
    held: bool
    of: Text = ""


@dataclass(frozen=True, slots=True)
class SweepJudgement:
    """The result of an expectation. value: that of the group furthest from holding; None if one is unknown.
    groups: empty without `by`.
    """

    text: Text
    value: int | float | Text | None
    held: bool
    groups: tuple[GroupJudgement, ...] = ()


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic, such as `median(latency.mean_ms where roles.client=9)`."""

    name: str
    path: str
    where: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """The text as in the file."""
        where = " and ".join(f"{path}={value}" for path, value in self.where)
        return f"{self.name}({self.path}{f' where {where}' if where else ''})"

    @property
    def statistics(self) -> tuple["Statistic", ...]:
        """The statistics that it uses."""
        return (self,)

    def value(self, results: Sequence[Result]) -> float | None:
        """Compute it over these runs; None if there are none, or one lacks the figure."""
        chosen = [
            each for each in results if all(ran_with_value(each, *condition) for condition in self.where)
        ]
        found = [value_at(each.summary, self.path) for each in chosen]
        known = [float(value) for value in found if number_of(value)]
        return STATISTICS[self.name](known) if known and len(known) == len(found) else None


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio, such as `max(latency.p99_ms where x=1) / max(latency.p99_ms where x=2)`."""

    over: Statistic
    under: Statistic

    @property
    def text(self) -> str:
        """The text as in the file."""
        return f"{self.over.text} / {self.under.text}"

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics that it uses."""
        return (self.over, self.under)

    def value(self, results: Sequence[Result]) -> float | None:
        """Compute it over these runs; None if one statistic is unknown or the divisor is 0."""
        over, under = self.over.value(results), self.under.value(results)
        return over / under if over is not None and under else None


@dataclass(frozen=True, slots=True)
class Best:
    """A best value, such as `argmin(parameters.fanout, median(latency.mean_ms))`. name: a key of BEST."""

    name: str
    along: str
    of: Statistic

    @property
    def text(self) -> str:
        """The text as in the file."""
        return f"{self.name}({self.along}, {self.of.text})"

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics that it uses."""
        return (self.of,)

    def value(self, results: Sequence[Result]) -> str | None:
        """Return the swept value, as text, with the best statistic, or all such values.

        None if the statistic is unknown for a value.
        """
        found = [
            (at, self.of.value(group)) for (at,), group in grouped_by_values(results, (self.along,)).items()
        ]
        known = [(at, value) for at, value in found if value is not None]
        if not known or len(known) < len(found):
            return None
        best = BEST[self.name](value for _, value in known)
        return " and ".join(at for at, value in known if value == best)


@dataclass(frozen=True, slots=True)
class SweepExpectation:
    """A comparison for each group of runs. op: a key of OPERATORS. by: swept fields."""

    left: Statistic | Ratio | Best
    by: tuple[str, ...]
    op: str
    value: float | int | str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text. Raises ValueError with the problem."""
        match = WRITTEN.fullmatch(text.strip()) if len(text) <= TEXT_MAX else None
        left = _left(match["left"].strip()) if match else None
        if match is None or left is None:
            raise ValueError(f"{text!r:.80} is not a comparison such as: {EXAMPLE}")
        by = tuple(path.strip() for path in match["by"].split(",")) if match["by"] else ()
        return cls(left, by, match["operator"], _right(left, match["operator"], match["value"]))

    @property
    def text(self) -> str:
        """The text as in the file."""
        by = f" by {', '.join(self.by)}" if self.by else ""
        return f"{self.left.text}{by} {self.op} {self.value}"

    def evaluate(self, results: Sequence[Result]) -> SweepJudgement:
        """Evaluate it on the results of the runs."""
        groups = tuple(
            self._judged(members, " ".join(map("=".join, zip(self.by, key, strict=True))))
            for key, members in grouped_by_values(results, self.by).items()
        )
        return SweepJudgement(
            self.text,
            self._worst([group.value for group in groups]),
            bool(groups) and all(group.held for group in groups),
            groups if self.by else (),
        )

    def problem(self, sweep: Mapping[str, Sequence[Any]], fault_names: Iterable[str]) -> str | None:
        """Return why a sweep over these values cannot meet this expectation, or None."""
        names = list(fault_names)
        wrong = (path_problem(each.path, names) for each in self.left.statistics)
        return next(filter(None, wrong), None) or next(self._unswept(sweep), None)

    def _judged(self, results: Sequence[Result], of: str) -> GroupJudgement:
        found = self.left.value(results)
        held = found is not None and bool(OPERATORS[self.op](found, self.value))
        return GroupJudgement(found, held, of)

    def _worst(self, values: Sequence[Any]) -> Any:
        if not values or any(value is None for value in values):
            return None
        if self.op in ("<", "<="):
            return max(values)
        if self.op in (">", ">="):
            return min(values)
        return next((value for value in values if not OPERATORS[self.op](value, self.value)), values[0])

    def _unswept(self, sweep: Mapping[str, Sequence[Any]]) -> Iterator[str]:
        """Yield the fields and values in it that are not swept."""
        paths = [*self.by, *(path for each in self.left.statistics for path, _ in each.where)]
        values = [condition for each in self.left.statistics for condition in each.where]
        if isinstance(self.left, Best):
            paths.append(self.left.along)
            values.append((self.left.along, str(self.value)))
        for path in paths:
            if path not in sweep:
                yield f"the sweep does not try values for {path}{suggestion(path, sweep)}"
        for path, value in values:
            tried = [value_text(each) for each in sweep[path]]
            if value not in tried:
                yield f"the sweep does not try {path}={value}: it tries {', '.join(tried)}"


def grouped_by_values(results: Sequence[Result], paths: Sequence[str]) -> dict[tuple[str, ...], list[Result]]:
    """Group the runs by their values for these fields, as text, in order of first appearance."""
    found: dict[tuple[str, ...], list[Result]] = {}
    for each in results:
        found.setdefault(tuple(value_text(each.values.get(path)) for path in paths), []).append(each)
    return found


def ran_with_value(result: Result, path: str, value: str) -> bool:
    """Return whether a run had this value, as text, for a swept field."""
    return value_text(result.values.get(path)) == value


def _left(text: str) -> Statistic | Ratio | Best | None:
    if match := _ALONG.fullmatch(text):
        return Best(match["best"], match["path"], _statistic(match["of"]))
    if match := _RATIO.fullmatch(text):
        return Ratio(_statistic(match["over"]), _statistic(match["under"]))
    return _statistic(text) if _OF_RUNS.fullmatch(text) else None


def _statistic(text: str) -> Statistic:
    match = _OF_RUNS.fullmatch(text)
    assert match is not None  # the pattern around it matched
    name, path, where = match.groups()
    if name not in STATISTICS:
        raise ValueError(f"there is no statistic {name}{suggestion(name, STATISTICS)}")
    conditions = [condition.split("=") for condition in re.split(r"\s+and\s+", where)] if where else []
    return Statistic(name, path, tuple((path.strip(), value.strip()) for path, value in conditions))


def _right(left: Statistic | Ratio | Best, op: str, text: str) -> float | int | str:
    if isinstance(left, Best):
        if op not in ("==", "!="):
            raise ValueError(f"{left.name} gives a swept value: compare it with == or !=")
        return text
    if NUMBER.fullmatch(text) and math.isfinite(value := number(text)):
        return value
    raise ValueError(f"{text} is not a number; its unit is in the path")


SweepExpectationField = Annotated[
    SweepExpectation,
    *written_as_text(
        SweepExpectation, EXAMPLE, EXAMPLE, "argmin(parameters.fanout, median(latency.mean_ms)) == 4"
    ),
]
