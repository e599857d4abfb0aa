"""Input of the site: a history's tables, grouped by entries of suites and by nights, read once.

The usual level before each night is the median of the nights before, computed for all series at once.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analysis.history import History
from analysis.history.regressions.series import MetricSeries, series_of

Row = Mapping[str, Any]
NIGHTS = 30
"""Number of nights whose median is the usual level."""

Levels = dict[tuple[str, str, str], dict[str, float]]
"""Usual level before each night, by suite, entry and metric."""


@dataclass(frozen=True, slots=True)
class NightSuiteEntry:
    """An experiment of a suite: its runs by night, oldest first, and its series."""

    suite: str
    name: str
    nights: dict[str, tuple[Row, ...]]
    series: tuple[MetricSeries, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Its suite and name."""
        return (self.suite, self.name)

    @property
    def last(self) -> str:
        """The last night of the experiment."""
        return next(reversed(self.nights))

    @property
    def experiment(self) -> str:
        """The experiment's name, as of its last run."""
        return str(self.nights[self.last][-1]["experiment"])


@dataclass(frozen=True, slots=True)
class EarlierNights:
    """A whole history. runs: in the order of the tables, to which `MetricSeries.rows` refers."""

    entries: Mapping[tuple[str, str], NightSuiteEntry]
    runs: Sequence[Row]
    metrics: pa.Table
    expectations: pa.Table
    problems: tuple[str, ...]

    @property
    def suites(self) -> tuple[str, ...]:
        """Names of all suites."""
        return tuple(dict.fromkeys(suite for suite, _ in self.entries))

    def of_suite(self, suite: str) -> list[NightSuiteEntry]:
        """Return a suite's entries, by name."""
        return [entry for entry in self.entries.values() if entry.suite == suite]

    def last_night(self, suite: str) -> str:
        """Return the last night of a suite."""
        return max(entry.last for entry in self.of_suite(suite))

    def run(self, name: str) -> Row | None:
        """Return the run of this name."""
        return next((run for run in reversed(self.runs) if run["run"] == name), None)


def read_past(history: History) -> EarlierNights:
    """Read the whole history."""
    table, metrics, expectations = history.tables()
    runs = table.to_pylist()
    nights: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        nights[run["suite"], run["entry"]][run["night"]].append(run)
    series = defaultdict(list)
    for one in series_of(table, metrics):
        series[one.suite, one.entry].append(one)
    entries = {}
    for suite, entry in sorted(nights):
        found = nights[suite, entry]
        own = {night: tuple(found[night]) for night in sorted(found)}
        entries[suite, entry] = NightSuiteEntry(suite, entry, own, tuple(series[suite, entry]))
    return EarlierNights(entries, runs, metrics, expectations, tuple(history.problems))


def levels(past: EarlierNights) -> Levels:
    """Return the usual level of every series with a better direction; a first night has none."""
    return {
        (series.suite, series.entry, series.metric): dict(
            zip(series.dates[1:], before(series.nights.medians), strict=True)
        )
        for entry in past.entries.values()
        for series in entry.series
    }


def before(medians: NDArray[np.float64]) -> list[float]:
    """Return for each night but the first the median of up to NIGHTS nights before it."""
    if medians.size < 2:
        return []
    padded = np.concatenate([np.full(NIGHTS - 1, np.nan), medians[:-1]])
    windows = np.lib.stride_tricks.sliding_window_view(padded, NIGHTS)
    return [float(level) for level in np.nanmedian(windows, axis=1)]
