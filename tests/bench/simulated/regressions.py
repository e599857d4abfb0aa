"""How long the check of a night takes with a year behind it, how often quiet nights raise an alarm, and after
how many nights planted changes are found: in simulated years of 20 experiments with three runs a night.

Nights are gone through one by one, each with what was known then. A change counts as found on the first night
that reports it, as far off or as a change point.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.history import History
from analysis.history.regressions.checking import check_night
from analysis.history.regressions.series import MetricSeries, series_of
from tests.analysis.history.regressions.replay import replayed
from tests.analysis.history.year import Planted, entries, make_year, metrics_of, night_of
from tests.bench.rows import Row, row

NIGHTS, QUIET, BEGINS, WITHIN = 365, 100, 300, 60
ASKED_S = 10
FEW = 3
"""Number of quiet nights in which a few findings are acceptable."""
NEAR = 5
"""A change point counts as found if it is reported at most this many nights early."""
SEEDS = (1, 2, 3)
PLANTED = {
    "throughput": ("throughput.events_per_s", -1),
    "latency p50": ("latency.p50_ms", 1),
    "latency p99": ("latency.p99_ms", 1),
    "recovery, switch": ("recovery.cut.switch_s", 1),
    "recovery, catch-up": ("recovery.cut.catch_up_s", 1),
}
FRACTIONS = (0.05, 0.10, 0.30)


def measure() -> list[Row]:
    """Measure for one to four minutes."""
    return [_speed(), *_quiet(), *(row for fraction in FRACTIONS for row in _planted(fraction))]


def _speed() -> Row:
    with tempfile.TemporaryDirectory(prefix="cutset-bench-") as folder:
        history = make_year(Path(folder), nights=NIGHTS)
        began = time.perf_counter()
        check_night(history, night_of(NIGHTS - 1))
        took = time.perf_counter() - began
    return row("check of a night, a year of 20 experiments", took, "s", ASKED_S, missed=took > ASKED_S)


def _quiet() -> list[Row]:
    alarms = []
    for seed in SEEDS:
        runs, series = _year(seed)
        nights = [night_of(number) for number in range(NIGHTS - QUIET, NIGHTS)]
        found = [each for _, found in replayed(series, runs, nights) for each in found]
        alarms.append(len({(each.entry, each.metric, each.first_bad_night) for each in found}))
    return [
        row(f"findings in 100 quiet nights, year {seed}", float(count), "", FEW, missed=count > FEW)
        for seed, count in zip(SEEDS, alarms, strict=True)
    ]


def _planted(fraction: float) -> list[Row]:
    rows = []
    for name, (metric, worse) in PLANTED.items():
        changed = [entry for entry in entries() if metric in metrics_of(entry)]
        planted = [Planted(entry, metric, BEGINS, worse * fraction) for entry in changed]
        runs, series = _year(SEEDS[0], planted)
        nights = [night_of(number) for number in range(BEGINS, BEGINS + WITHIN)]
        first: dict[str, int] = {}
        for number, (_, found) in enumerate(replayed(series, runs, nights), start=1):
            for each in found:
                if (
                    each.metric == metric
                    and each.direction == "worse"
                    and each.first_bad_night >= night_of(BEGINS - NEAR)
                ):
                    first.setdefault(each.entry, number)
            if len(first) == len(changed):
                break
        waits = [first.get(entry, np.inf) for entry in changed]
        for part, said in ((0.5, "half"), (1.0, "all")):
            wait = float(np.quantile(waits, part, method="higher"))
            rows.append(
                row(
                    f"{fraction:.0%} in {name}: {said} of {len(changed)} found after",
                    wait if np.isfinite(wait) else None,
                    "nights",
                )
            )
    return rows


def _year(seed: int, planted: Sequence[Planted] = ()) -> tuple[pa.Table, list[MetricSeries]]:
    with tempfile.TemporaryDirectory(prefix="cutset-bench-") as folder:
        history: History = make_year(Path(folder), nights=NIGHTS, seed=seed, planted=planted)
        runs = history.runs()
        return runs, series_of(runs, history.metrics())
