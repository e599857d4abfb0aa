"""The figures of the paper's evaluation, drawn from sweeps: which sweep gets which, and the paper's numbers.

An experiment names its figures under `paper:`. Of a figure whose points a sweep does not have, nothing is
drawn here. What the paper says stands beside what we measured; numbers that only its graphics show are lost,
so only those in its text are given (Sprinkler 5.1, 5.2, 5.4).
"""

from collections.abc import Callable, Mapping, Sequence

from analysis.pages.charting.chart_model import Axis, Reference, Series
from analysis.pages.report.charts.sweep_charts import (
    Comparison,
    SweepChart,
    convergence_charts,
    generic_charts,
    line_of,
    lines_of,
)
from analysis.pages.report.formatting import EN_DASH, NOT_MEASURED, large, with_unit
from analysis.sweeps import Sweep, SweepRunResult, grouped
from analysis.systems.sprinkler_collection import figure_9, figure_10

SPRINKLER = "sprinkler-2013"
PAPER_PEAK = (2.6e6, 2.7e6)
PAPER_LATENCY_MS = 300.0
PAPER_FANOUT = 4
SATURATED = 0.97
"""A system that delivers less of what it is offered is past saturation."""


def charts(sweep: Sweep) -> tuple[SweepChart, ...]:
    """The plots of a sweep: the paper's figures, or else what serves any sweep."""
    paper = sweep.experiment.get("paper") or {}
    names = [str(name) for name in paper.get("figures") or ()] if paper.get("document") == SPRINKLER else []
    found: list[SweepChart] = []
    for builder in dict.fromkeys(_FIGURES[name] for name in names if name in _FIGURES):
        found += [chart for chart in builder(sweep) if chart.series]
    anybodys = (*generic_charts(sweep), *convergence_charts(sweep))
    return tuple(found) or tuple(chart for chart in anybodys if chart.series)


def figure_4(sweep: Sweep) -> tuple[SweepChart, ...]:
    """Throughput, and throughput per driver, against the number of drivers per proxy."""
    runs = [run for run in sweep.measured if run.regions and run.drivers]
    proxies = sorted({len(run.regions) for run in runs})

    def per_proxy(run: SweepRunResult) -> float:
        return run.drivers / len(run.regions)

    def named(count: int) -> str:
        return f"{count} {'proxy' if count == 1 else 'proxies'}"

    def per_driver(run: SweepRunResult) -> float | None:
        return None if run.throughput_per_s is None else run.throughput_per_s / run.drivers

    drivers = Axis("drivers per proxy", ticks=tuple(sorted({per_proxy(run) for run in runs})))
    peaks = {
        count: max(
            (
                each.mean
                for each in grouped(
                    [run for run in runs if len(run.regions) == count],
                    per_proxy,
                    lambda run: run.throughput_per_s,
                ).values()
            ),
            default=None,
        )
        for count in proxies
    }
    comparisons = tuple(
        Comparison(
            f"Peak throughput, {named(count)}",
            f"2.6{EN_DASH}2.7 million events/s" if count == 3 else "slightly more than with 3 proxies",
            large(peak, "events/s"),
        )
        for count, peak in peaks.items()
    )
    whole = SweepChart(
        "figure-4a",
        "Throughput by drivers",
        drivers,
        Axis("events/s at the slowest client", "events/s"),
        lines_of(runs, per_proxy, lambda run: len(run.regions), lambda run: run.throughput_per_s, named),
        of="figure 4a",
        references=(Reference(f"paper, 3 proxies: 2.6{EN_DASH}2.7 M", *PAPER_PEAK),),
        comparisons=comparisons,
    )
    each = SweepChart(
        "figure-4b",
        "Throughput per driver",
        drivers,
        Axis("events/s at the slowest client, per driver", "events/s"),
        lines_of(runs, per_proxy, lambda run: len(run.regions), per_driver, named),
        of="figure 4b",
    )
    return whole, each


def figure_5(sweep: Sweep) -> tuple[SweepChart, ...]:
    """Mean throughput against the shuffle time, a line per fanout."""
    runs = [run for run in sweep.measured if run.parameter("shuffle_time_us") and run.parameter("fanout")]
    if len({run.parameter("shuffle_time_us") for run in runs}) < 2:
        return ()
    means = grouped(runs, lambda run: run.parameter("fanout"), lambda run: run.settled_per_s)
    best = max(means, key=lambda fanout: means[fanout].mean, default=None)
    return (
        SweepChart(
            "figure-5b",
            "Throughput by shuffle time",
            Axis("shuffle time, ms", "ms"),
            Axis("events/s at one client, after 300 ms", "events/s"),
            lines_of(
                runs,
                lambda run: run.parameter("shuffle_time_us") / 1e3,
                lambda run: run.parameter("fanout"),
                lambda run: run.settled_per_s,
                "F = {}".format,
            ),
            of="figure 5b",
            references=_offered(runs),
            comparisons=(
                Comparison("Best fanout", str(PAPER_FANOUT), NOT_MEASURED if best is None else str(best)),
                Comparison(
                    "Throughput at it",
                    "slightly above the load offered, 2.592 million events/s",
                    NOT_MEASURED if best is None else large(means[best].high, "events/s"),
                ),
            ),
        ),
    )


def figure_6(sweep: Sweep) -> tuple[SweepChart, ...]:
    """Mean latency against throughput as the load grows, a line per fanout, a plot per source region."""
    runs = [run for run in sweep.measured if run.offered_per_s and run.latency_ms]
    if len({run.offered_per_s for run in runs}) < 2:
        return ()
    regions = list(dict.fromkeys(region for run in runs for region in run.regions))
    calm = [
        latency
        for run in runs
        for latency in run.latency_ms.values()
        if (run.settled_per_s or 0.0) >= SATURATED * (run.offered_per_s or 0.0)
    ]
    worst = with_unit(max(calm), "ms") if calm else NOT_MEASURED
    told = Comparison("Mean latency before saturation, at most", "generally below 300 ms", worst)
    return tuple(
        SweepChart(
            f"figure-6-{place}",
            f"Latency of events from {region}",
            Axis("events/s at one client", "events/s"),
            Axis("mean latency until every client has it, ms", "ms"),
            _by_load(runs, region),
            of="figure 6",
            references=(Reference("paper: 300 ms", PAPER_LATENCY_MS, PAPER_LATENCY_MS),),
            comparisons=(told,) if place == 0 else (),
            note="Each line's points are loads, growing from left to right.",
        )
        for place, region in enumerate(regions)
    )


def _by_load(runs: list[SweepRunResult], region: str) -> tuple[Series, ...]:
    """A line per fanout whose points are in order of the load; their place is the throughput there."""
    found = []
    fanouts = sorted({run.parameter("fanout") or 0 for run in runs})
    for place, fanout in enumerate(fanouts):
        mine = [run for run in runs if (run.parameter("fanout") or 0) == fanout]
        latency = grouped(mine, lambda run: run.offered_per_s, lambda run: run.latency_ms.get(region))
        throughput = grouped(mine, lambda run: run.offered_per_s, lambda run: run.settled_per_s)
        points = [
            (throughput[load].mean, latency[load])
            for load in sorted(latency, key=lambda load: load or 0.0)
            if load in throughput
        ]
        if points:
            found.append(line_of(f"F = {fanout}", place, points))
    return tuple(found)


def _offered(runs: Sequence[SweepRunResult]) -> tuple[Reference, ...]:
    """What the drivers offered, where all runs were offered the same."""
    loads = {run.offered_per_s for run in runs}
    load = loads.pop() if len(loads) == 1 else None
    return (Reference(f"offered: {large(load, 'events/s')}", load, load),) if load else ()


Builder = Callable[[Sweep], tuple[SweepChart, ...]]
_FIGURES: Mapping[str, Builder] = {
    **dict.fromkeys(("4", "4a", "4b"), figure_4),
    **dict.fromkeys(("5", "5b"), figure_5),
    "6": figure_6,
    "9": figure_9,
    **dict.fromkeys(("10", "10a", "10b"), figure_10),
}
"""By the paper's number, as experiments name it."""
