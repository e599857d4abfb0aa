"""Figure 7 of the paper (5.3): throughput and latency while a link is out; and figure 1's rule in such runs.

The measures are those of the paper's text; its curves are not available. Throughput is the mean over the
regions of what a client receives, in the bins of the analysis.
"""

from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from analysis.pages.charting.chart_model import Axis
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.report.formatting import NOT_MEASURED, number, percent, with_unit
from analysis.sweeps import SweepResults, SweepRunResult
from analysis.systems.papers import PaperComparison, paper_value

SETTLED_S = 5.0
"""The normal level is that from this time on until the cut."""
NEAR = 0.03
"""Throughput that is below the normal level by less is normal."""
MADE_UP = 0.8
"""Throughput is above normal until this part of the dip is made up; the rest is within the noise of bins."""
GLITCH_S = 5.0
SECOND_BINS = 5
"""Bins of a second: batches make single bins noisy."""
Values = NDArray[np.float64]


def figure_7(sweep: SweepResults) -> tuple[SweepChart, ...]:
    """Plot throughput and latency over time, with the paper's words beside the numbers."""
    if not len(sweep.runs) == len(sweep.measured) == 1:
        return ()
    [run] = sweep.measured
    faults = {fault["kind"]: fault for fault in run.summary.get("faults") or ()}
    at_s, per_s = _means(run, "throughput", "events_per_s", scope="region")
    near, _, far = str(faults.get("cut", {}).get("target", "")).partition("-")
    others = [region for region in run.regions if region not in {near, far}]
    if not {"cut", "restore"} <= faults.keys() or not others or not len(at_s):
        return ()
    cut_s, healed_s = (float(faults[kind]["requested_s"]) for kind in ("cut", "restore"))
    delays = {region: _means(run, "latency", "mean_ms", origin=region) for region in (others[0], near)}
    comparisons: list[PaperComparison] = []
    if all(_is_whole(starts_s, cut_s, healed_s) for starts_s, _ in [(at_s, per_s), *delays.values()]):
        level = per_s / per_s[(at_s >= SETTLED_S) & (at_s < cut_s)].mean()
        comparisons += _throughput(at_s, level, cut_s, healed_s)
        comparisons += _latency(list(delays.values()), cut_s, healed_s)
    latency = [
        sweep_series(f"from {region}", place, x=x, y=y)
        for place, (region, (x, y)) in enumerate(delays.items())
    ]
    time, throughput = Axis("time, s"), Axis("events/s at one client", "events/s")
    return (
        SweepChart(
            "figure-7a",
            "Throughput over time",
            time,
            throughput,
            (sweep_series("throughput", 0, x=at_s, y=per_s),),
            of="figure 7a",
            comparisons=tuple(comparisons),
        ),
        SweepChart(
            "figure-7b",
            "Latency over time",
            time,
            Axis("mean latency until every client has it, ms", "ms"),
            tuple(latency),
            of="figure 7b",
        ),
    )


def _is_whole(at_s: Values, cut_s: float, healed_s: float) -> bool:
    """Return whether events arrived before the outage, at its begin and end, and after it."""
    periods = (
        (SETTLED_S, cut_s),
        (cut_s, min(cut_s + GLITCH_S, healed_s)),
        (max(cut_s, healed_s - GLITCH_S), healed_s),
        (healed_s, healed_s + GLITCH_S),
    )
    return all(((at_s >= begin_s) & (at_s < end_s)).any() for begin_s, end_s in periods)


def _means(run: SweepRunResult, table: str, column: str, **where: str) -> tuple[Values, Values]:
    """Return the starts of bins, and the mean of a column in each, of rows with these values."""
    found: dict[float, list[float]] = {}
    for row in run.rows(table):
        if row[column] is not None and all(row[name] == value for name, value in where.items()):
            found.setdefault(row["start_s"], []).append(row[column])
    return np.array(sorted(found)), np.array([fmean(found[start_s]) for start_s in sorted(found)])


def _line(name: str, ours: str) -> PaperComparison:
    value = paper_value("sprinkler-2013", name)
    assert value
    return PaperComparison(value.what, value, ours)


def _throughput(at_s: Values, level: Values, cut_s: float, healed_s: float) -> tuple[PaperComparison, ...]:
    """Return the dip, the recovery and the overshoot, and the glitch. level: relative to the normal one."""
    after_cut = (at_s >= cut_s) & (at_s < healed_s)
    times, during = at_s[after_cut], level[after_cut]
    below = np.argmax(during < 1 - NEAR)
    above = below + np.argmax(during[below:] >= 1)
    dip = during[below:above]
    made_up = np.cumsum(during[above:] - 1) >= (1 - dip).sum() * MADE_UP
    above_s = times[above:][np.argmax(made_up)] - times[above]
    seconds = np.convolve(level[at_s >= healed_s], np.ones(SECOND_BINS) / SECOND_BINS, "valid")
    glitch = seconds[: SECOND_BINS * int(GLITCH_S)]
    overshoot = f"{above_s:.3g} s, until {MADE_UP:.0%} of the dip is made up"
    return (
        _line("cut-drop", f"at t = {times[below]:g} s, to {percent(dip.min(initial=1.0))} of normal"),
        _line("cut-recovered", f"at t = {times[above]:g} s"),
        _line("cut-overshoot", overshoot if made_up.any() else "the dip is not made up"),
        _line("cut-glitch", f"{percent(glitch.min())} to {percent(glitch.max())} of normal over a second"),
    )


def _latency(delays: list[tuple[Values, Values]], cut_s: float, healed_s: float) -> list[PaperComparison]:
    """Return the latencies before and during the outage, of another region and of one at the link."""

    def between(delay: tuple[Values, Values], begin_s: float, end_s: float) -> Values:
        return delay[1][(delay[0] >= begin_s) & (delay[0] < end_s)]

    before = [with_unit(between(delay, SETTLED_S, cut_s).mean(), "ms") for delay in delays]
    other, near = (
        f"at most {with_unit(between(delay, cut_s, cut_s + GLITCH_S).max(), 'ms')}, "
        f"then {with_unit(between(delay, healed_s - GLITCH_S, healed_s).mean(), 'ms')}"
        for delay in delays
    )
    return [
        _line("cut-baseline", " and ".join(before)),
        _line("cut-latency", near),
        _line("cut-latency-other", other),
    ]


def figure_1(sweep: SweepResults) -> tuple[SweepChart, ...]:
    """Plot how often proxies change sources late, for the subscription rule of figure 1 and Cutset's."""
    late = [run.figure("convergence", "late_switches") or 0.0 for run in sweep.measured]
    return (
        SweepChart(
            "figure-1",
            "Changes of source long after the last fault",
            Axis("run"),
            Axis("changes of source"),
            (sweep_series("changes", 0, x=range(1, len(late) + 1), y=late),),
            of="figure 1",
            comparisons=tuple(PaperComparison(run.short_label, "", _stability(run)) for run in sweep.runs),
        ),
    )


def _stability(run: SweepRunResult) -> str:
    """Return whether streams come to rest after the last fault of a run."""
    if not run.summary:
        return NOT_MEASURED
    switch_s = (run.summary.get("recovery") or {}).get("cut", {}).get("switch_s")
    return "; ".join(
        (
            f"events flow again after {with_unit(switch_s, 's')}",
            f"{number(run.figure('convergence', 'late_switches'))} late changes of source",
            f"{number(run.figure('convergence', 'stalled'))} streams stalled",
            f"{number(run.figure('events', 'lost'))} deliveries lost",
        )
    )
