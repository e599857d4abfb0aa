"""The report's figures and a sweep's charts as PNG and SVG, for papers, slides and the README.

They use the same charts as the page's plots. Figures of an invalid run are marked as such.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from analysis.pages.charting.chart_model import Chart
from analysis.pages.charting.figure import BAD, MUTED, draw, own_style, save
from analysis.pages.report.charts.charts import latency_chart, throughput_chart
from analysis.pages.report.charts.sweep_charts import SweepChart
from analysis.pages.report.run_reader import AnalysedRun
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.records.rundir import RunDirectory

_LEFT_OUT = "p95"  # on paper it would crowd p50 and p99
LEFT = 0.115  # fraction of a figure's width for tick labels
LETTER_INCHES = 0.082  # per letter of a line's name, which is on the right


def write_figures(record: AnalysedRun, run: RunDirectory) -> tuple[Path, ...]:
    """Draw the run's timelines as `figures/<name>.png` and `.svg`. Returns their paths."""
    run.figures.mkdir(exist_ok=True)
    charts = (throughput_chart(record), latency_chart(record))
    with own_style():
        return save({each.key: _timeline(record, each) for each in charts if each.series}, run.figure)


def _timeline(record: AnalysedRun, chart: Chart) -> Figure:
    figure = Figure(figsize=(7.6, 3.3))
    axes = figure.add_axes((0.085, 0.145, 0.86, 0.68))
    figure.text(0.012, 0.94, chart.title, weight="bold", size=11, va="center")
    drawn = tuple(
        replace(one, dash="solid") if one.group == "p50" else one
        for one in chart.series
        if one.group != _LEFT_OUT
    )
    styles = "; solid p50, dotted p99" if {"p50", "p99"} <= {one.group for one in drawn} else ""
    figure.text(0.012, 0.875, chart.y.label + styles, color=MUTED, va="center")
    _mark_invalid(record, figure)
    draw(axes, replace(chart, series=drawn))
    return figure


def _mark_invalid(record: AnalysedRun, figure: Figure) -> None:
    if not record.valid:
        figure.text(0.988, 0.985, "from an invalid run", color=BAD, weight="bold", ha="right", va="top")


def write_sweep_figures(charts: Sequence[SweepChart], sweep: SweepDirectory) -> tuple[Path, ...]:
    """Draw each chart as `figures/<key>.png` and `.svg`. Returns their paths."""
    sweep.figures.mkdir(exist_ok=True)
    return write_charts(charts, sweep.figure)


def write_charts(charts: Sequence[SweepChart], path_of: Callable[[str, str], Path]) -> tuple[Path, ...]:
    """Draw each chart as PNG and SVG. path_of: function from a chart's key and a format to its path."""
    with own_style():
        return save({chart.key: _sweep_figure(chart) for chart in charts}, path_of)


def _sweep_figure(chart: SweepChart) -> Figure:
    named = chart.x.kind == "category"  # names are slanted below the axis
    figure = Figure(figsize=(7.6, 4.6) if named else (6.4, 3.9))
    longest = max(len(series.label) for series in chart.series)
    width = 1 - LEFT - (LETTER_INCHES * longest + 0.1) / figure.get_size_inches()[0]
    axes = figure.add_axes((LEFT, 0.27, width, 0.58) if named else (LEFT, 0.125, width, 0.72))
    title = f"{chart.title}  ({chart.of} of the paper)" if chart.of else chart.title
    figure.text(0.012, 0.95, title, weight="bold", size=11, va="center")
    figure.text(0.012, 0.893, chart.y.label, color=MUTED, va="center")
    draw(axes, chart)
    return figure
