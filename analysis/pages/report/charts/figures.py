"""The report's figures and a sweep's charts as PNG and SVG, for papers, slides and the README.

They use the same charts as the page's plots. Figures of an invalid run are marked as such.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.pages.charting.chart_model import Chart, highest
from analysis.pages.charting.figure import BAD, INK, MUTED, draw, own_style, save
from analysis.pages.report.charts.charts import latency_chart, link_charts, throughput_chart
from analysis.pages.report.charts.sweep_charts import SweepChart
from analysis.pages.report.charts.topology_drawing import LINE_HEIGHT, DrawnLink, drawing, inside_at
from analysis.pages.report.clocks import clock_charts
from analysis.pages.report.run_reader import AnalysedRun
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.records.rundir import RunDirectory

LINKS_DRAWN = 12  # small multiples that are still readable on a page
_LEFT_OUT = "p95"  # on paper it would crowd p50 and p99
_REGION_BOX = "round4,pad=0.9,rounding_size=1.2"
LEFT = 0.115  # fraction of a figure's width for tick labels
LETTER_INCHES = 0.082  # per letter of a line's name, which is on the right


def write_figures(record: AnalysedRun, run: RunDirectory) -> tuple[Path, ...]:
    """Draw the figures that this run has data for, as `figures/<name>.png` and `.svg`.

    Returns their paths.
    """
    run.figures.mkdir(exist_ok=True)
    throughput, latency = throughput_chart(record), latency_chart(record)
    links = link_charts(record) or link_charts(record, "events_per_s")
    clocks = clock_charts(record)
    with own_style():
        figures = {
            "throughput": _timeline(record, throughput) if throughput.series else None,
            "latency": _timeline(record, latency) if latency.series else None,
            "links": _small_multiples(record, "Traffic on the links", links[:LINKS_DRAWN]),
            "topology": _topology(record) if record.regions else None,
            "clocks": _small_multiples(record, "Clocks", clocks),
        }
        return save(figures, run.figure)


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


def _small_multiples(record: AnalysedRun, title: str, charts: Sequence[Chart]) -> Figure | None:
    """Return one plot per chart, on a common scale if they share it."""
    if not charts:
        return None
    columns = min(3, len(charts))
    rows = -(-len(charts) // columns)
    shared = bool(charts[0].scale)
    figure = Figure(figsize=(3.1 * columns, 1.9 * rows + 0.6))
    grid = figure.subplots(rows, columns, sharex=True, sharey=shared, squeeze=False)
    height = figure.get_size_inches()[1]
    figure.subplots_adjust(
        left=0.085, right=0.945, wspace=0.4, hspace=0.46, top=1 - 0.75 / height, bottom=0.45 / height
    )
    figure.text(0.012, 1 - 0.17 / height, title, weight="bold", size=11, va="center")
    figure.text(0.012, 1 - 0.36 / height, charts[0].y.label, color=MUTED, va="center")
    _mark_invalid(record, figure)
    top = max(highest(chart.series) for chart in charts) if shared else None
    for chart, axes in zip(charts, grid.flat, strict=False):
        draw(axes, chart, top)
        axes.set_title(chart.title, loc="left", size=9, weight="bold", pad=4)
        axes.set_xlabel("")
    for axes in grid.flat[len(charts) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel(charts[0].x.label, color=MUTED)
    return figure


def _topology(record: AnalysedRun) -> Figure:
    figure = Figure(figsize=(5.6, 4.0))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    drawn = drawing(record)
    axes.set_xlim(0, drawn.width)
    axes.set_ylim(drawn.height, 0)
    for link in drawn.links:
        _draw_link(axes, link)
    for region in drawn.regions:
        axes.text(
            region.x, region.y, region.name, weight="bold", ha="center", va="center", zorder=4,
            color=INK if region.light else "white",
            bbox={"boxstyle": _REGION_BOX, "fc": region.colour, "ec": "none"},
        )  # fmt: skip
        axes.text(
            region.x, region.y + inside_at(region), region.inside,
            ha="center", va="center", color=MUTED, size=8,
        )  # fmt: skip
    axes.text(drawn.width / 2, drawn.height - 4, drawn.inside and f"each region: {drawn.inside}", color=MUTED,
        size=8, ha="center", va="bottom")  # fmt: skip
    _mark_invalid(record, figure)
    return figure


def _draw_link(axes: Axes, link: DrawnLink) -> None:
    colour, style = (BAD, "--") if link.disturbed else (MUTED, "-")
    width = 1.8 if link.disturbed else 1
    axes.plot([link.x1, link.x2], [link.y1, link.y2], style, color=colour, linewidth=width, zorder=1)
    written = [*link.lines, *link.marks]
    for number, text in enumerate(written):
        up = LINE_HEIGHT * (number - (len(written) - 1) / 2)
        axes.text(
            link.label.x, link.label.y + up, text, size=8.5, ha="center", va="center", zorder=2,
            color=INK if number < len(link.lines) else BAD,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )  # fmt: skip


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
