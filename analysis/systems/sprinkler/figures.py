"""The figures of the paper's evaluation, drawn from sweeps, with the paper's numbers.

A figure is left out if the sweep lacks its points. The paper's numbers are shown beside the measured ones;
only those in its text are available, not those in its graphics (Sprinkler 5.1, 5.2, 5.4).
"""

from collections.abc import Callable, Mapping, Sequence

from analysis.pages.charting.chart_model import Axis, ChartSeries, Reference
from analysis.pages.report.charts.sweep_charts import ChartBuilder, SweepChart, line_of, lines_of
from analysis.pages.report.formatting import EN_DASH, NOT_MEASURED, large, number, percent, with_unit
from analysis.sweeps import RepetitionSpread, SweepResults, SweepRunResult, grouped
from analysis.systems.papers import PaperComparison, paper_number, paper_value
from analysis.systems.sprinkler.collection import figure_9, figure_10
from analysis.systems.sprinkler.outage import figure_1, figure_7

PAPER = "sprinkler-2013"
UNSAID = "only in the figure"
SATURATED = 0.97
"""A system that delivers less than this part of the offered load is saturated."""


def figure_4(sweep: SweepResults) -> tuple[SweepChart, ...]:
    """Plot throughput, and throughput per driver, against the number of drivers per proxy."""
    runs = [run for run in sweep.measured if run.regions and run.drivers]
    proxies = sorted({len(run.regions) for run in runs})

    def per_proxy(run: SweepRunResult) -> float:
        return run.drivers / len(run.regions)

    def named(count: int) -> str:
        return f"{count} {'proxy' if count == 1 else 'proxies'}"

    def per_driver(run: SweepRunResult) -> float | None:
        return None if run.throughput_per_s is None else run.throughput_per_s / run.drivers

    def shown(spread: RepetitionSpread) -> str:
        ends = f"{large(spread.low, '')} to {large(spread.high, '')}"
        return f"{large(spread.median, 'events/s')} ({ends}, runs: {spread.count})"

    drivers = Axis("drivers per proxy", ticks=tuple(sorted({per_proxy(run) for run in runs})))
    comparisons = []
    for count in proxies:
        of_count = [run for run in runs if len(run.regions) == count]
        spreads = grouped(of_count, per_proxy, lambda run: run.throughput_per_s)
        peak = max(spreads.values(), key=lambda spread: spread.median, default=None)
        paper = paper_value(PAPER, "peak" if count == 3 else "peak-fewer") or ""
        ours = NOT_MEASURED if peak is None else shown(peak)
        comparisons.append(PaperComparison(f"Peak throughput, {named(count)}: median, range", paper, ours))
        comparisons += [
            PaperComparison(f"{named(count)}, drivers of each: {each:g}", UNSAID, shown(spread))
            for each, spread in spreads.items()
        ]
    whole = SweepChart(
        "figure-4a",
        "Throughput by drivers",
        drivers,
        Axis("events/s at the slowest client", "events/s"),
        lines_of(runs, per_proxy, lambda run: len(run.regions), lambda run: run.throughput_per_s, named),
        of="figure 4a",
        references=(_peak(),),
        comparisons=tuple(comparisons),
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


def figure_5(sweep: SweepResults) -> tuple[SweepChart, ...]:
    """Plot mean throughput against the shuffle time, with a line per fanout."""
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
                PaperComparison(
                    "Best fanout",
                    paper_value(PAPER, "best-fanout") or "",
                    NOT_MEASURED if best is None else str(best),
                ),
                PaperComparison(
                    "Throughput with the best fanout",
                    paper_value(PAPER, "best-throughput") or "",
                    NOT_MEASURED if best is None else large(means[best].high, "events/s"),
                ),
                PaperComparison(
                    "Overloads the proxy", paper_value(PAPER, "overloads") or "", _overloaded(runs)
                ),
                *_points(sweep, rates),
            ),
        ),
    )


def _overloaded(runs: Sequence[SweepRunResult]) -> str:
    """Return where clients received less than the offered load."""
    shuffle_ms: dict[int, list[str]] = {}
    for run in runs:
        if run.offered_per_s and (run.settled_per_s or 0.0) < SATURATED * run.offered_per_s:
            shuffle_ms.setdefault(run.parameter("fanout"), []).append(
                f"{run.parameter('shuffle_time_us') / 1e3:g}"
            )
    found = [f"F = {fanout} with {', '.join(each)} ms" for fanout, each in sorted(shuffle_ms.items())]
    return f"less than {percent(SATURATED)} of the load arrives: {'; '.join(found)}" if found else "no point"


def figure_6(sweep: SweepResults) -> tuple[SweepChart, ...]:
    """Plot mean latency against throughput by load, with a line per fanout and a plot per source region."""
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
    paper_ms = paper_number(PAPER, "latency")
    comparison = PaperComparison(
        "Mean latency before saturation, at most", paper_value(PAPER, "latency") or "", worst
    )
    return tuple(
        SweepChart(
            f"figure-6-{place}",
            f"Latency of events from {region}",
            Axis("events/s at one client", "events/s"),
            Axis("mean latency until every client has it, ms", "ms"),
            _by_load(runs, region),
            of="figure 6",
            references=(Reference(f"paper: {paper_ms:g} ms", paper_ms, paper_ms),),
            comparisons=(comparison, *_points(sweep, rates)) if place == 0 else (),
            note="The points of a line are loads, increasing from left to right.",
        )
        for place, region in enumerate(regions)
    )


def _peak() -> Reference:
    """Return the range of the paper's peak with three proxies."""
    peak = paper_value(PAPER, "peak")
    assert peak
    low, high = peak.numbers
    return Reference(f"paper, 3 proxies: {low:g}{EN_DASH}{high:g} M", low * 1e6, high * 1e6)


def _points(sweep: SweepResults, text: Callable[[SweepRunResult], str]) -> tuple[PaperComparison, ...]:
    """Return a line for each run of the sweep; the paper's text gives no number for single points."""
    return tuple(
        PaperComparison(run.short_label, UNSAID, text(run) if run in sweep.measured else NOT_MEASURED)
        for run in sweep.runs
    )


def rates(run: SweepRunResult) -> str:
    """Return throughput and latency of one point, both as the paper measures them."""
    means = ", ".join(f"{region} {number(mean)}" for region, mean in run.latency_ms.items())
    lost, delivered = (run.figure("events", name) or 0.0 for name in ("lost", "delivered"))
    return "; ".join(
        (
            large(run.settled_per_s, "events/s"),
            f"slowest client {large(run.throughput_per_s, 'events/s')}",
            f"mean latency from {means} ms" if means else "no event after 300 ms reached all clients",
            f"p99 {with_unit(run.figure('latency', 'p99_ms'), 'ms')}",
            f"{percent(lost / (lost + delivered))} missing" if lost else "0 missing",
        )
    )


def _by_load(runs: list[SweepRunResult], region: str) -> tuple[ChartSeries, ...]:
    """Return a line per fanout, with points of latency by throughput in order of the load."""
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
    """Return the offered load as a reference line, if it is the same in all runs."""
    loads = {run.offered_per_s for run in runs}
    load = loads.pop() if len(loads) == 1 else None
    return (Reference(f"offered: {large(load, 'events/s')}", load, load),) if load else ()


FIGURES: Mapping[str, ChartBuilder] = {
    **dict.fromkeys(("4", "4a", "4b"), figure_4),
    **dict.fromkeys(("5", "5b"), figure_5),
    "1": figure_1,
    "6": figure_6,
    **dict.fromkeys(("7", "8"), figure_7),
    "9": figure_9,
    **dict.fromkeys(("10", "10a", "10b"), figure_10),
}
"""The builders by the paper's figure number, as experiments name it."""
