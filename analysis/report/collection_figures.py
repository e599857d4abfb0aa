"""Figures 9 and 10 of the paper (5.4): what key-based collection saves, from what proxies and drivers logged.

Logs of proxies have `history_stored` records with `generated`, the events of all streams so far, and
`stored`, how many of them the history still holds as events. Logs of drivers have one `invalidations_by_age`
record with `ages` (events since a key was inserted) and `counts` (invalidations of keys of that age). Savings
depend on how many events there were, so that number always stands beside them (checklist, 5.4).
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from analysis.report.formatting import large, percent
from analysis.report.sweep_charts import Comparison, Reference, SweepChart, SweepLine
from analysis.sweeps import Sweep, SweptRun
from topologies.palette import colour_of, dash_of

STORED, AGES = "history_stored", "invalidations_by_age"
PAPER_SAVED = {"zeta": "roughly three-fourths", "zipf": "roughly 85 % at skew 1.1, more with a higher skew"}


def figure_9(sweep: Sweep) -> tuple[SweepChart, ...]:
    """How often keys were invalidated, by their age, both logarithmic."""
    lines: list[SweepLine] = []
    slopes: list[Comparison] = []
    for run in _once(sweep):
        counts: dict[float, float] = {}
        for record in _logged(run, "driver", AGES):
            for age, count in zip(record["ages"], record["counts"], strict=True):
                counts[age] = counts.get(age, 0) + count
        points = sorted((age, count) for age, count in counts.items() if age > 0 and count > 0)
        if points:
            lines.append(_line(_name(run), len(lines), points))
            slopes.append(
                Comparison(f"Slope by age, {_name(run)}", "roughly Zipf-like", f"{_slope(points):.2f}")
            )
    return (
        SweepChart(
            "figure-9",
            "Invalidations by age of key",
            "events since the key was inserted",
            "invalidations",
            tuple(lines),
            of="figure 9",
            x_logarithmic=True,
            y_logarithmic=True,
            comparisons=tuple(slopes),
        ),
    )


def figure_10(sweep: Sweep) -> tuple[SweepChart, ...]:
    """Events stored against events generated, both logarithmic. a: unbounded keys, b: a bounded set."""
    charts = []
    for part, kind in (("a", "zeta"), ("b", "zipf")):
        lines: list[SweepLine] = []
        comparisons: list[Comparison] = []
        for run in _once(sweep):
            if (run.workload("keys") or {}).get("distribution") != kind:
                continue
            points = _stored(run)
            if points:
                lines.append(_line(_name(run), len(lines), points))
                generated, stored = points[-1]
                saved = f"{percent(1 - stored / generated)} of {large(generated, 'events')}"
                comparisons.append(Comparison(f"Saved, {_name(run)}", PAPER_SAVED[kind], saved))
        charts.append(
            SweepChart(
                f"figure-10{part}",
                f"Events stored, {'unbounded' if part == 'a' else 'bounded'} set of keys",
                "events generated",
                "events stored",
                tuple(lines),
                of=f"figure 10{part}",
                x_logarithmic=True,
                y_logarithmic=True,
                references=(Reference("without collection", 0.0, 0.0, diagonal=True),),
                comparisons=tuple(comparisons),
                note="What is saved grows with the number of events, which the paper's text does not give.",
            )
        )
    return tuple(charts)


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the straight line through the points' logarithms."""
    xs, ys = np.log10(np.array(points)).T
    return float(np.polyfit(xs, ys, 1)[0]) if len(points) > 1 else math.nan


def _stored(run: SweptRun) -> list[tuple[float, float]]:
    """(generated, stored) of the proxy that stores the most in the end; they all store the same, but lag."""
    best: list[tuple[float, float]] = []
    for host in _hosts(run, "proxy"):
        records = _records(run, host, STORED)
        points = sorted({(float(r["generated"]), float(r["stored"])) for r in records if r["stored"] > 0})
        if points and (not best or points[-1] > best[-1]):
            best = points
    return best


def _once(sweep: Sweep) -> tuple[SweptRun, ...]:
    """One run of each combination: repetitions draw the same curve."""
    return tuple(run for run in sweep.runs if run.plan and run.point.repetition == 0)


def _name(run: SweptRun) -> str:
    keys: Mapping[str, Any] = run.workload("keys") or {}
    inserted = f", {percent(keys['insertions'])} insertions" if keys.get("insertions") else ""
    return f"{keys.get('distribution', 'keys')} {keys.get('skew', math.nan):g}{inserted}"


def _line(name: str, number: int, points: list[tuple[float, float]]) -> SweepLine:
    xs, ys = zip(*points, strict=True)
    return SweepLine(name, colour_of(number), dash_of(number), tuple(map(float, xs)), tuple(map(float, ys)))


def _hosts(run: SweptRun, role: str) -> tuple[str, ...]:
    return tuple(process["host"] for process in run.plan.get("processes", ()) if process["role"] == role)


def _logged(run: SweptRun, role: str, event: str) -> Iterator[Mapping[str, Any]]:
    for host in _hosts(run, role):
        yield from _records(run, host, event)


def _records(run: SweptRun, host: str, event: str) -> list[Mapping[str, Any]]:
    path = run.directory.log(host)
    if not path.is_file():
        return []
    found = []
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if event in line:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue  # a crash cut the last line short
                if record.get("event") == event:
                    found.append(record)
    return found
