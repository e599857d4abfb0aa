"""Results of a study: its tables and single numbers, by seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from analysis.pages.report.formatting import EN_DASH, NOT_MEASURED, number
from experiments.campaigns.studydir import StudyDirectory, StudyRecord
from experiments.records.json_files import read_json

Values = npt.NDArray[Any]


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

    def column(self, seed: int, table: str, name: str) -> Values:
        """Return a column of a seed's table."""
        path = self.directory.seed(seed) / f"{table}.parquet"
        found: Values = pq.read_table(path, columns=[name])[name].to_numpy()
        return found

    def number(self, seed: int, name: str) -> float:
        """Return a single number of a seed."""
        return float(read_json(self.directory.numbers(seed)).get(name, float("nan")))

    def each(self, measure: Callable[[int], float]) -> list[float]:
        """Return a measure for every seed."""
        return [float(measure(seed)) for seed in self.seeds]

    def shown(self, measure: Callable[[int], float], digits: int = 3) -> str:
        """Return a measure as text: its median over seeds, and the range if there are several."""
        values = [value for value in self.each(measure) if np.isfinite(value)]
        if not values:
            return NOT_MEASURED
        text = number(median(values), digits)
        if len(values) == 1:
            return text
        return f"{text} ({number(min(values), digits)}{EN_DASH}{number(max(values), digits)})"
