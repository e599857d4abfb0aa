"""The history's tables as series: one for each (suite, entry, metric), its runs sorted by night.

Invalid and crashed runs are left out, because their numbers are not measurements; so are metrics without a
better direction. A series has one value for each night of its entry: an entry that runs weekly has 52 a year.

This module also defines which changes are relevant: those above the resolution of the metric and above a
smallest fraction. A median latency that went from 0.020 to 0.024 ms is 20 % worse and means nothing; so each
unit has a smallest difference that counts. Counts of errors, such as lost events, have none: every increase
counts.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MEASURED = ("passed", "failed")
"""Verdicts of runs whose numbers count, if they are valid."""


@dataclass(frozen=True, slots=True)
class Nights:
    """One number per night, oldest first: median, lowest and highest of its runs, and the number of runs."""

    medians: Floats
    lowest: Floats
    highest: Floats
    runs: Ints


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One metric of one entry over the nights.

    dates: the nights that have it, as 2026-03-14. first: index of each night's first run in `rows`,
    then the end of the last night. rows: rows of the table `runs`, for commits and names.
    """

    suite: str
    entry: str
    metric: str
    unit: str
    better: str
    dates: tuple[str, ...]
    nights: Nights
    first: Ints
    rows: Ints

    def rows_of(self, night: int) -> Ints:
        """Return the rows of a night's runs in the table `runs`. night: its index."""
        return self.rows[self.first[night] : self.first[night + 1]]


def series_of(runs: pa.Table, metrics: pa.Table) -> list[MetricSeries]:
    """Return all series, by suite, entry and metric.

    runs, metrics: as `analysis.history.History` returns them, of the same nights.
    """
    rows = _rows_of_runs(runs, metrics)
    metrics = metrics.append_column("row", pa.array(rows)).filter(pa.array(rows >= 0))
    metrics = metrics.filter(pc.is_finite(metrics["value"]))
    names = ("suite", "entry", "metric", "night")
    dictionaries = [_sorted_dictionary(metrics[name]) for name in names]
    codes = [code for code, _ in dictionaries]
    values = metrics["value"].to_numpy()
    order = np.lexsort((values, *reversed(codes)))
    if not order.size:
        return []
    codes, values = [code[order] for code in codes], values[order]
    changes = np.stack([np.diff(code, prepend=-1) != 0 for code in codes])
    series_at = np.flatnonzero(changes[:3].any(axis=0))
    night_at = np.append(np.flatnonzero(changes.any(axis=0)), order.size)
    labels = [words for _, words in dictionaries]
    units, betters = metrics["unit"].combine_chunks(), metrics["better"].combine_chunks()
    all_rows = metrics["row"].to_numpy()[order]
    found = []
    for begin, end in zip(series_at, np.append(series_at[1:], order.size), strict=True):
        unit, better = units[order[begin]].as_py() or "", betters[order[begin]].as_py() or ""
        if not comparable(unit, better):
            continue
        suite, entry, metric = (labels[k][codes[k][begin]] for k in range(3))
        edges = night_at[np.searchsorted(night_at, begin) : np.searchsorted(night_at, end) + 1]
        dates = tuple(labels[3][codes[3][edge]] for edge in edges[:-1])
        mine, first = values[begin:end], edges - begin
        found.append(
            MetricSeries(
                suite, entry, metric, unit, better, dates, _nights(mine, first), first, all_rows[begin:end]
            )
        )
    return found


def _nights(values: Floats, first: Ints) -> Nights:
    """Return median, lowest, highest and count of each night. values: sorted within each night."""
    begin, count = first[:-1], np.diff(first)
    medians = (values[begin + (count - 1) // 2] + values[begin + count // 2]) / 2
    return Nights(medians, values[begin], values[first[1:] - 1], count)


def _rows_of_runs(runs: pa.Table, metrics: pa.Table) -> Ints:
    """Return the row in `runs` for each row of `metrics`, or -1 if that run does not count."""
    measured = pc.and_(runs["valid"], pc.is_in(runs["verdict"], pa.array(MEASURED)))
    row = np.flatnonzero(measured.to_numpy(zero_copy_only=False))
    name = pc.binary_join_element_wise(runs["night"], runs["run"], "/").combine_chunks().take(pa.array(row))
    mine = pc.binary_join_element_wise(metrics["night"], metrics["run"], "/")
    found = pc.index_in(mine, value_set=name).fill_null(-1).to_numpy().astype(np.int64)
    return np.where(found >= 0, row[found] if row.size else -1, -1)


def _sorted_dictionary(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Return numbers that sort like the texts, and the texts in order."""
    encoded = column.combine_chunks().dictionary_encode()
    words = encoded.dictionary.to_pylist()
    order = np.argsort(np.array(words, dtype=object), kind="stable") if words else np.zeros(0, np.int64)
    place = np.empty(len(words), np.int64)
    place[order] = np.arange(len(words))
    return place[encoded.indices.to_numpy()], [words[number] for number in order]


FRACTION_MIN: Final = 0.025
"""Smaller relative changes of a level are not reported, however certain they are."""

RESOLUTION: Final = {
    "s": 0.01,  # recovery: nodes detect silence and reconnect in steps of tens of milliseconds
    "ms": 0.1,  # latency: jitter of a busy processor on a machine that runs all nodes
    "events/s": 1.0,
    "B/s": 10.0,
    "events": 1.0,
}
"""The smallest difference that counts, by unit; other units have none."""

COARSE: Final = {"settled_s": 0.2}
"""Metrics that are measured in wider steps than others of their unit, by the last part of their name."""


def is_relevant_change(before: float, after: float, metric: str, unit: str) -> bool:
    """Return whether a change of level from `before` to `after` counts."""
    difference = abs(after - before)
    return difference >= resolution_of(metric, unit) and difference > FRACTION_MIN * abs(before)


def resolution_of(metric: str, unit: str) -> float:
    """Return the smallest difference of a metric that counts, in its unit; 0 if there is none."""
    return COARSE.get(metric.rsplit(".", 1)[-1], RESOLUTION.get(unit, 0.0))


def comparable(unit: str, better: str) -> bool:
    """Return whether a metric is followed.

    A metric without a better direction describes a run and never gets worse.
    """
    return better in ("lower", "higher") and bool(unit)
