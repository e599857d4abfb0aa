"""Figure 7 of the paper (5.3): throughput and latency while the link between two regions is out.

The measures are those of the paper's text; its curves are not available. Throughput is the mean over the
regions of what a client receives, in the bins of the analysis.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class _Outage:
    """Times of the bins and throughput in them; latency by source region; the cut's times and its ends."""

    at_s: Values
    per_s: Values
    latency: dict[str, tuple[Values, Values]]
    cut_s: float
    healed_s: float
    near: str
    far: str

    @property
    def normal(self) -> float:
        """The throughput before the cut."""
        return float(self.per_s[(self.at_s >= SETTLED_S) & (self.at_s < self.cut_s)].mean())

    def latency_ms(self, region: str, begin_s: float, end_s: float) -> Values:
        """Return the mean latencies of the bins from `begin_s` until `end_s`."""
        at_s, mean_ms = self.latency[region]
        return mean_ms[(at_s >= begin_s) & (at_s < end_s)]


def figure_7(sweep: SweepResults) -> tuple[SweepChart, ...]:
    """Plot throughput and latency over time, with the paper's words beside the numbers."""
    outage = _outage(sweep.measured[0]) if len(sweep.runs) == len(sweep.measured) == 1 else None
    if outage is None:
        return ()
    throughput = SweepChart(
        "figure-7a",
        "Throughput over time",
        Axis("time, s"),
        Axis("events/s at one client", "events/s"),
        (sweep_series("throughput", 0, x=outage.at_s, y=outage.per_s),),
        of="figure 7a",
        comparisons=tuple(_comparisons(outage)),
    )
    latency = SweepChart(
        "figure-7b",
        "Latency over time",
        Axis("time, s"),
        Axis("mean latency until every client has it, ms", "ms"),
        tuple(
            sweep_series(f"from {region}", place, x=at_s, y=mean_ms)
            for place, (region, (at_s, mean_ms)) in enumerate(outage.latency.items())
            if region in {outage.near, outage.far}
        ),
        of="figure 7b",
    )
    return throughput, latency


def figure_1(sweep: SweepResults) -> tuple[SweepChart, ...]:
    """Plot how often proxies change sources late, for the subscription rule of figure 1 and Cutset's."""
    late = [run.figure("convergence", "late_switches") for run in sweep.measured]
    return (
        SweepChart(
            "figure-1",
            "Changes of source long after the last fault",
            Axis("run"),
            Axis("changes of source"),
            (sweep_series("changes", 0, x=range(1, len(late) + 1), y=[each or 0.0 for each in late]),),
            of="figure 1",
            comparisons=tuple(PaperComparison(run.point.label, "", _stability(run)) for run in sweep.runs),
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


def _outage(run: SweepRunResult) -> _Outage | None:
    """Return the outage of a run with a cut link that is restored; None without one."""
    faults = {fault["kind"]: fault for fault in run.summary.get("faults") or ()}
    cut, healed = faults.get("cut"), faults.get("restore")
    rates: dict[float, list[float]] = {}
    for row in run.rows("throughput"):
        if row["scope"] == "region" and row["events_per_s"] is not None:
            rates.setdefault(row["start_s"], []).append(row["events_per_s"])
    if not (cut and healed and rates):
        return None
    by_region: dict[str, list[tuple[float, float]]] = {}
    for row in run.rows("latency"):
        by_region.setdefault(row["origin"], []).append((row["start_s"], row["mean_ms"]))
    latency = {name: _columns(sorted(points)) for name, points in sorted(by_region.items())}
    at_s, per_s = _columns([(start, sum(each) / len(each)) for start, each in sorted(rates.items())])
    ends = str(cut["target"]).split("-")
    others = [region for region in latency if region not in ends]
    if not others or ends[0] not in latency:
        return None
    times = [float(fault["requested_s"]) for fault in (cut, healed)]
    cut_s, healed_s = times
    return _Outage(at_s, per_s, latency, cut_s, healed_s, near=ends[0], far=others[0])


def _columns(points: Sequence[tuple[float, float]]) -> tuple[Values, Values]:
    table = np.array(points, dtype=np.float64)
    return table[:, 0], table[:, 1]


def _comparisons(outage: _Outage) -> list[PaperComparison]:
    cut_s, healed_s, at_s = outage.cut_s, outage.healed_s, outage.at_s
    level = outage.per_s / outage.normal
    after_cut = (at_s >= cut_s) & (at_s < healed_s)
    below = np.argmax(level[after_cut] < 1 - NEAR)
    above = below + np.argmax(level[after_cut][below:] >= 1)
    dip = level[after_cut][below:above]
    dip_s, recovered_s = at_s[after_cut][[below, above]]
    made_up = np.cumsum(level[after_cut][above:] - 1) >= (1 - dip).sum() * MADE_UP
    overshoot = "the dip is not made up"
    if made_up.any():
        above_s = at_s[after_cut][above:][np.argmax(made_up)] - recovered_s
        overshoot = f"{above_s:.3g} s, until {MADE_UP:.0%} of the dip is made up"
    seconds = np.convolve(level[at_s >= healed_s], np.ones(SECOND_BINS) / SECOND_BINS, "valid")
    glitch = seconds[: SECOND_BINS * int(GLITCH_S)]
    near_ms, far_ms = (
        outage.latency_ms(region, SETTLED_S, cut_s).mean() for region in (outage.near, outage.far)
    )

    def line(name: str, ours: str) -> PaperComparison:
        value = paper_value("sprinkler-2013", name)
        assert value
        return PaperComparison(value.what, value, ours)

    def during_ms(region: str) -> str:
        peak = outage.latency_ms(region, cut_s, cut_s + GLITCH_S).max()
        later = outage.latency_ms(region, healed_s - GLITCH_S, healed_s).mean()
        return f"at most {with_unit(peak, 'ms')}, then {with_unit(later, 'ms')}"

    return [
        line("cut-baseline", f"{with_unit(far_ms, 'ms')} and {with_unit(near_ms, 'ms')}"),
        line("cut-drop", f"at t = {dip_s:g} s, to {percent(dip.min(initial=1.0))} of normal"),
        line("cut-recovered", f"at t = {recovered_s:g} s"),
        line("cut-overshoot", overshoot),
        line(
            "cut-glitch",
            f"{percent(glitch.min())} to {percent(glitch.max())} of normal over a second",
        ),
        line("cut-latency", during_ms(outage.near)),
        line("cut-latency-other", during_ms(outage.far)),
    ]
