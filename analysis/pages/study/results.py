"""Results of a study: its tables and single numbers, by seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.pages.report.charts.sweep_charts import SweepChart
from analysis.pages.report.formatting import EN_DASH, NOT_MEASURED, number
from analysis.systems.papers import PaperComparison, PaperValue
from experiments.campaigns.studydir import StudyDirectory, StudyRecord
from experiments.records.json_files import read_json
from topologies.errors import InputError

Values = npt.NDArray[Any]
Measure = Callable[[int], float]
"""Returns a number of a seed."""


@dataclass(frozen=True, slots=True)
class StudyContent:
    """The page's contents from a study's results. notes: how the numbers were measured."""

    charts: tuple[SweepChart, ...]
    beside: tuple[PaperComparison, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StudyResults:
    """The results of the seeds that are done."""

    directory: StudyDirectory
    record: StudyRecord
    seeds: Sequence[int]

    @classmethod
    def from_directory(cls, directory: StudyDirectory) -> "StudyResults":
        """Return the results in a study's directory. Raises InputError."""
        record = directory.read()
        return cls(directory, record, directory.done(record.seeds))

    def column(self, seed: int, table: str, name: str, **where: Any) -> Values:
        """Return a column of a seed's table, of the rows with these values in other columns."""
        rows = self.rows(seed, table, (name, *where))
        for other, value in where.items():
            rows = rows.filter(pc.field(other) == value)
        found: Values = rows[name].to_numpy()
        return found

    def rows(self, seed: int, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a seed's table, with these columns or all. Raises InputError if it cannot be read."""
        path = self.directory.seed(seed) / f"{table}.parquet"
        try:
            rows = pq.read_table(path)
            return rows if columns is None else rows.select(columns)
        except (OSError, KeyError, pa.ArrowException) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(str(path), None, "", f"is missing or damaged: {reason}") from None

    def statistic(self, table: str, name: str, statistic: Callable[[Values], Any], **where: Any) -> Measure:
        """Return the measure of a statistic of a column (see `column`)."""
        return lambda seed: float(statistic(self.column(seed, table, name, **where)))

    def number(self, seed: int, name: str) -> float:
        """Return a single number of a seed."""
        path = self.directory.numbers(seed)
        found = read_json(path).get(name, float("nan"))
        if not isinstance(found, int | float):
            raise InputError(str(path), None, name, f"is no number: {found!r:.40}")
        return float(found)

    def single(self, name: str) -> Measure:
        """Return the measure of a single number."""
        return lambda seed: self.number(seed, name)

    def each(self, measure: Measure) -> list[float]:
        """Return a measure for every seed."""
        return [float(measure(seed)) for seed in self.seeds]

    def compared(
        self,
        what: str,
        paper: PaperValue | str | None,
        measure: Measure,
        why: str = "",
        *,
        digits: int = 3,
        unit: str = "",
    ) -> PaperComparison:
        """Return the comparison of the paper's number with a measure, as `shown` writes it.

        paper: None if it gives none. why: the reason for a difference; default: that of papers.yaml.
        """
        return PaperComparison(what, paper or "", self.shown(measure, digits) + unit, why)

    def shown(self, measure: Measure, digits: int = 3) -> str:
        """Return a measure as text: its median over seeds, and the range if they differ."""
        values = [value for value in self.each(measure) if np.isfinite(value)]
        if not values:
            return NOT_MEASURED
        text = number(median(values), digits)
        least, most = number(min(values), digits), number(max(values), digits)
        return text if least == most else f"{text} ({least}{EN_DASH}{most})"
