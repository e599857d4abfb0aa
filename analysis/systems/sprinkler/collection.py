"""Figures 9 and 10 of the paper (5.4): the workload by age of keys, and the savings of key-based collection.

Figure 9 shows only the workload, so it is drawn from its generator. For figure 10 proxies log `hist` records
for each stream, with the number of `events` so far and the number of `live`, not collected ones. Savings
depend on the number of events, so they are always shown with it (checklist, 5.4).
"""

import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.pages.charting.chart_model import Axis, ChartSeries, Reference
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.report.formatting import large, number, percent
from analysis.sweeps import SweepResults, SweepRunResult
from analysis.systems.papers import PaperComparison, paper_value
from analysis.timelines.log_records import log_records
from experiments.declared import Trait
from node.protocols.sprinkler.storage.key_popularity import invalidations_by_age

HIST = "hist"
TICKS = 5_000
"""Ticks of figure 9, with one key inserted in each. The paper does not state its number."""
LAMBDAS = (10, 200)
"""Invalidations per insertion; the paper's authors consider 200 realistic with skew 1.1."""
BINS_PER_DECADE = 8
SAVED_FROM_DECADE = 5
"""Savings are reported at 10^5 events, 10^6 and so on, for which the checklist has computed values."""
PAPER = "sprinkler-2013"


def figure_9(sweep: SweepResults) -> tuple[SweepChart, ...]:
    """Plot invalidations by the keys' age, both logarithmic, for the skews of the sweep."""
    runs = [run for run in _once(sweep) if run.workload("keys")]
    lines: list[ChartSeries] = []
    slopes: list[PaperComparison] = []
    for skew in sorted({float(run.workload("keys")["skew"]) for run in runs}):
        for per_insertion in LAMBDAS:
            random = Random(sweep.record.seed)  # noqa: S311  (not security-relevant)
            counts = invalidations_by_age(skew, per_insertion, TICKS, random)
            points = _binned(counts)
            name = f"skew {skew:g}, λ = {per_insertion}"
            lines.append(_line(name, len(lines), points))
            slopes.append(
                PaperComparison(f"Slope, {name}", paper_value(PAPER, "slope") or "", f"{_slope(points):.2f}")
            )
    return (
        SweepChart(
            "figure-9",
            "Invalidations by age of key",
            Axis("insertions since the key was inserted", kind="logarithmic"),
            Axis(f"invalidations, of {number(TICKS)} insertions", kind="logarithmic"),
            tuple(lines),
            of="figure 9",
            comparisons=tuple(slopes),
            note="The workload as generated. Means over logarithmic bins of age.",
        ),
    )


def figure_10(sweep: SweepResults) -> tuple[SweepChart, ...]:
    """Plot stored against generated events, both logarithmic. a: unbounded keys, b: a bounded set."""
    charts = []
    for part, kind in (("a", "zeta"), ("b", "zipf")):
        lines: list[ChartSeries] = []
        comparisons: list[PaperComparison] = []
        for run in _once(sweep):
            keys = run.workload("keys") or {}
            if keys.get("distribution") != kind or (kind == "zeta" and keys.get("insertions")):
                continue  # an unbounded set has no insertions
            points = _stored(run)
            if points:
                lines.append(_line(_name(run), len(lines), points))
                inserted = bool(keys.get("insertions"))
                paper = paper_value(PAPER, *(("insertions",) if inserted else ("saved", kind))) or ""
                comparisons.append(PaperComparison(f"Saved, {_name(run)}", paper, _saved(points)))
        charts.append(
            SweepChart(
                f"figure-10{part}",
                f"Events stored, {'unbounded' if part == 'a' else 'bounded'} set of keys",
                Axis("events generated", "events", kind="logarithmic"),
                Axis("events stored", "events", kind="logarithmic"),
                tuple(lines),
                of=f"figure 10{part}",
                references=(Reference("without collection", 0.0, 0.0, diagonal=True),),
                comparisons=tuple(comparisons),
                note="Savings grow with the number of events, which the paper's text does not give.",
            )
        )
    return tuple(charts)


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the line fitted to the points' logarithms."""
    xs, ys = np.log10(np.array(points)).T
    return float(np.polyfit(xs, ys, 1)[0]) if len(points) > 1 else math.nan


def _binned(counts: NDArray[np.int64]) -> list[tuple[float, float]]:
    """Return (age, mean count) over bins of equal width on a logarithmic scale, from age 1 on."""
    ages = np.arange(1, len(counts))
    bins = np.floor(np.log10(ages) * BINS_PER_DECADE).astype(np.int64)
    found = []
    for place in np.unique(bins):
        mine = bins == place
        mean = float(counts[1:][mine].mean())
        if mean > 0:
            found.append((float(np.exp(np.log(ages[mine]).mean())), mean))
    return found


def _stored(run: SweepRunResult) -> list[tuple[float, float]]:
    """Return (events generated, events stored) of the longest stream of a proxy; all store the same."""
    best: list[tuple[float, float]] = []
    for process in run.plan.having(Trait.SERVER) if run.plan else ():
        by_stream: dict[int, list[tuple[float, float]]] = {}
        for record in log_records(run.directory.log(process.host), (HIST,)):
            if record.get("live") and record.get("events") and record.get("stream") is not None:
                point = (float(record["events"]), float(record["live"]))
                by_stream.setdefault(record["stream"], []).append(point)
        best = max((best, *(sorted(points) for points in by_stream.values())), key=lambda p: p[-1:])
    return best


def _saved(points: Sequence[tuple[float, float]]) -> str:
    """Return the part of the events that need not be stored, at powers of ten and at the end."""
    xs, ys = np.log10(np.array(points)).T
    decades = [10.0**n for n in range(SAVED_FROM_DECADE, math.ceil(xs[-1])) if n >= xs[0]]
    savings = [(large(n, ""), 1 - 10 ** float(np.interp(math.log10(n), xs, ys)) / n) for n in decades]
    end = large(points[-1][0], "")
    savings = [each for each in savings if each[0] != end]  # the run ends at about a power of ten
    savings.append((end, 1 - points[-1][1] / points[-1][0]))
    return ", ".join(f"{percent(saved)} of {n}" for n, saved in savings) + " events"


def _once(sweep: SweepResults) -> tuple[SweepRunResult, ...]:
    """Return one run of each combination, since repetitions have the same curve."""
    return tuple(run for run in sweep.runs if run.plan and run.point.repetition == 0)


def _name(run: SweepRunResult) -> str:
    keys: Mapping[str, Any] = run.workload("keys") or {}
    inserted = f", {percent(keys['insertions'])} insertions" if keys.get("insertions") else ""
    return f"{keys.get('distribution', 'keys')} {keys.get('skew', math.nan):g}{inserted}"


def _line(name: str, place: int, points: list[tuple[float, float]]) -> ChartSeries:
    xs, ys = zip(*points, strict=True)
    return sweep_series(name, place, x=xs, y=ys)
