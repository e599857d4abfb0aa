"""Differences between the machines' clocks: a table, and a chart of each clock with its error bound.

A clock is drawn relative to the straight line of its longest period without a change, because its offset
(hours, perhaps) and drift would hide all else; both are given beside it as text.
"""

import numpy as np

from analysis.capture.clocks.clock import Floats
from analysis.capture.clocks.run_clocks import summary
from analysis.pages.charting.chart_model import Axis, Chart, ChartSeries
from analysis.pages.report.charts.charts import TIME, TOGETHER
from analysis.pages.report.formatting import count_of, number, short_time, with_unit
from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.tables import Column, PageTable, figure, label, quantity, table, text_cell
from topologies.drawing.palette import colour_of

POINTS = 240
CLOCKS_DRAWN = 12
ROOM = 1.1  # an axis reaches this factor beyond its values
_SOURCES = {
    "reference": "the run's clock",
    "packets": "packets in both directions",
    "control": "control connection only",
    "nothing": "unknown",
}


def clock_charts(record: AnalysedRun) -> tuple[Chart, ...]:
    """Return a chart of every clock but the reference, up to a limit."""
    times = record.run.times
    zero_ns, end_ns = times.zero_ns, times.drained_ns or times.ended_ns
    known = [
        each
        for each in record.machines
        if each["source"] in ("packets", "control") and each["machine"] in record.clocks.by_machine
    ]
    if zero_ns is None or end_ns is None or end_ns <= zero_ns:
        return ()
    reference_ns = np.linspace(zero_ns, end_ns, POINTS).astype(np.int64)
    seconds = (reference_ns - zero_ns) / 1e9
    order = [each["machine"] for each in record.machines]
    found = []
    for each in known[:CLOCKS_DRAWN]:
        clock = record.clocks.by_machine[each["machine"]]
        low, high = clock.bounds(clock.own(reference_ns))
        longest = max(each["stretches"], key=lambda one: one["to_ns"] - one["from_ns"])
        rate = longest["drift_ppm"] * 1e3  # ns a second
        middle_s = ((longest["from_ns"] + longest["to_ns"]) / 2 - longest["offset_ns"] - zero_ns) / 1e9
        straight = longest["offset_ns"] + rate * (seconds - middle_s)
        words = f"{short_time(straight[0] / 1e9)}, {rate / 1e3:+.2f}\u00a0ppm"
        colour = colour_of(order.index(each["machine"]))
        bounds_us = ((low - straight) / 1e3, (high - straight) / 1e3)
        found.append(_chart(each["machine"], colour, words, seconds, bounds_us))
    return tuple(found)


def _chart(machine: str, colour: str, line: str, x: Floats, bounds_us: tuple[Floats, Floats]) -> Chart:
    """Return the chart of a clock: bounds of its difference from a straight line.

    line: description of that straight line.
    """
    low, high = bounds_us
    top = ROOM * float(max(np.abs(low).max(), np.abs(high).max(), 1.0))
    points = (each.round(3).tolist() for each in ((low + high) / 2, low, high))
    series = ChartSeries(machine, colour, x.round(4).tolist(), *points)
    return Chart(
        key=f"clock-{machine}",
        title=f"{machine}: {line}",
        x=Axis(TIME, "s", low=0.0, high=float(x[-1])),
        y=Axis("µs from its straight line", "µs", low=-top, high=top, from_zero=False),
        series=(series,),
        together=TOGETHER,
        small=True,
    )


def _bound(bound_ms: float) -> str:
    return f"±{short_time(bound_ms / 1e3, 2)}" if bound_ms else "0"


_COLUMNS = (
    label("Machine", "machine"),
    Column(
        "Known from", lambda row: text_cell(_SOURCES[row["from"]], "bad" if row["from"] == "nothing" else "")
    ),
    Column(
        "Offset",
        lambda row: figure(short_time((row["offset_ms"] or 0) / 1e3), row["offset_ms"]),
        numeric=True,
        help="from the run's clock, in the longest period without a change",
    ),
    quantity("Drift", "drift_ppm", lambda ppm: with_unit(ppm, "ppm"), "rate relative to the run's clock"),
    quantity("Error bound", "error_ms", _bound, "median error bound of the offset, in either direction"),
    quantity("Widest bound", "error_max_ms", _bound, "near a change of the clock, or far from any packet"),
    quantity("Packets", "packets", number, "seen by both machines, in both directions"),
    label("Changes", lambda row: count_of(row["changes"], "change") if row["changes"] else "none"),
)


def clocks_table(record: AnalysedRun) -> PageTable:
    """Return what is known of each machine's clock, and from what data."""
    return table("clocks", _COLUMNS, summary(record.machines))
