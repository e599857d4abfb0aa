"""Replays a history night by night: the check of each night sees the series as they were then."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from analysis.history.regressions.checking import findings_of
from analysis.history.regressions.findings import RegressionFinding
from analysis.history.regressions.series import MetricSeries, Nights


def replayed(
    series: Sequence[MetricSeries], runs: pa.Table, nights: Sequence[str], looked_at: int | None = None
) -> Iterator[tuple[str, list[RegressionFinding]]]:
    """Yield each night's findings from the data known then.

    looked_at: the number of series; default: of these.
    """
    for night in nights:
        known = [short for each in series if (short := as_of(each, night)) is not None]
        yield night, findings_of(known, runs, night, looked_at)


def as_of(series: MetricSeries, night: str) -> MetricSeries | None:
    """Return the series as it was after the night, or None if it had not begun."""
    count = bisect_right(series.dates, night)
    if not count:
        return None
    old, end = series.nights, int(series.first[count])
    return replace(
        series,
        dates=series.dates[:count],
        nights=Nights(old.medians[:count], old.lowest[:count], old.highest[:count], old.runs[:count]),
        first=series.first[: count + 1],
        rows=series.rows[:end],
    )
