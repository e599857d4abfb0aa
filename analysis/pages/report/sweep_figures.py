"""A sweep's charts as PNG and SVG."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from analysis.pages.charting.figure import MUTED, draw, own_style, save
from analysis.pages.report.sweep_charts import SweepChart
from experiments.sweepdir import SweepDirectory

LEFT = 0.115  # of a figure's width, for what stands at the ticks
LETTER_INCHES = 0.082  # of a line's name, which has room to the right


def write_figures(charts: Sequence[SweepChart], sweep: SweepDirectory) -> tuple[Path, ...]:
    """Draw each as `figures/<key>.png` and `.svg`; returns their paths."""
    sweep.figures.mkdir(exist_ok=True)
    with own_style():
        return save({chart.key: _figure(chart) for chart in charts}, sweep.figure)


def _figure(chart: SweepChart) -> Figure:
    named = chart.x.kind == "category"  # names stand at a slant below the axis
    figure = Figure(figsize=(7.6, 4.6) if named else (6.4, 3.9))
    longest = max(len(series.label) for series in chart.series)
    width = 1 - LEFT - (LETTER_INCHES * longest + 0.1) / figure.get_size_inches()[0]
    axes = figure.add_axes((LEFT, 0.27, width, 0.58) if named else (LEFT, 0.125, width, 0.72))
    title = f"{chart.title}  ({chart.of} of the paper)" if chart.of else chart.title
    figure.text(0.012, 0.95, title, weight="bold", size=11, va="center")
    figure.text(0.012, 0.893, chart.y.label, color=MUTED, va="center")
    draw(axes, chart)
    return figure
