"""What the site is made from: a history's tables, sorted by entries of suites and by nights, read once."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from analysis.history import History
from analysis.regressions.series import Series, series_of

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """An experiment of a suite: its runs by night, oldest first, and its series."""

    suite: str
    name: str
    nights: Mapping[str, Sequence[Row]]
    series: tuple[Series, ...]

    @property
    def key(self) -> tuple[str, str]:
        """What tells it apart."""
        return (self.suite, self.name)

    @property
    def last(self) -> str:
        """Its last night."""
        return next(reversed(self.nights))

    @property
    def experiment(self) -> str:
        """The experiment's name, as of its last run."""
        return str(self.nights[self.last][-1]["experiment"])

    def last_good(self, before: str) -> Row | None:
        """The last run that passed before a night."""
        for night in reversed(self.nights):
            if night < before:
                for run in reversed(self.nights[night]):
                    if run["verdict"] == "passed":
                        return run
        return None


@dataclass(frozen=True, slots=True)
class Past:
    """A whole history. runs: in the order of the tables, to which `Series.rows` points."""

    entries: Mapping[tuple[str, str], Entry]
    runs: Sequence[Row]
    metrics: pa.Table
    expectations: pa.Table
    problems: tuple[str, ...]

    @property
    def suites(self) -> tuple[str, ...]:
        """Names of all suites."""
        return tuple(dict.fromkeys(suite for suite, _ in self.entries))

    def of_suite(self, suite: str) -> list[Entry]:
        """Its entries, by name."""
        return [entry for entry in self.entries.values() if entry.suite == suite]

    def tonight(self, suite: str) -> str:
        """The last night of a suite."""
        return max(entry.last for entry in self.of_suite(suite))

    def run(self, name: str) -> Row | None:
        """The run of that name."""
        return next((run for run in reversed(self.runs) if run["run"] == name), None)


def read_past(history: History) -> Past:
    """Read everything."""
    table = history.runs()
    problems = list(history.problems)
    metrics, expectations = history.metrics(), history.expectations()
    problems += [problem for problem in history.problems if problem not in problems]
    runs = table.to_pylist()
    nights: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        nights[run["suite"], run["entry"]][run["night"]].append(run)
    series = defaultdict(list)
    for one in series_of(table, metrics):
        series[one.suite, one.entry].append(one)
    entries = {
        key: Entry(
            *key, {night: tuple(nights[key][night]) for night in sorted(nights[key])}, tuple(series[key])
        )
        for key in sorted(nights)
    }
    return Past(entries, runs, metrics, expectations, tuple(dict.fromkeys(problems)))
