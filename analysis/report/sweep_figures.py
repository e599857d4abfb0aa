"""A sweep's plots as PNG and SVG, drawn from the same data as the page's, with matplotlib."""

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FixedLocator, FuncFormatter, NullLocator

from analysis.report.direct_labels import at_ends
from analysis.report.figures import (
    DASHES,
    DPI,
    GRID,
    HEADROOM,
    LABEL_GAP,
    METADATA,
    MUTED,
    axes_fraction,
    label_at_end,
    own_style,
)
from analysis.report.sweep_charts import Reference, SweepChart, SweepLine
from experiments.sweepdir import SweepDirectory


def write_figures(charts: Sequence[SweepChart], sweep: SweepDirectory) -> tuple[Path, ...]:
    """Draw each as `figures/<key>.png` and `.svg`; returns their paths."""
    sweep.figures.mkdir(exist_ok=True)
    written = []
    with own_style():
        for chart in charts:
            figure = _figure(chart)
            for extension, about in METADATA.items():
                path = sweep.figure(chart.key, extension)
                figure.savefig(path, format=extension, dpi=DPI, metadata=about)
                written.append(path)
    return tuple(written)


def _figure(chart: SweepChart) -> Figure:
    figure = Figure(figsize=(6.4, 3.9))
    axes = figure.add_axes((0.095, 0.125, 0.745, 0.72))
    title = f"{chart.title}  ({chart.of} of the paper)" if chart.of else chart.title
    figure.text(0.012, 0.95, title, weight="bold", size=11, va="center")
    figure.text(0.012, 0.893, chart.y_label, color=MUTED, va="center")
    _scale(axes, chart)
    for line in chart.lines:
        if chart.x_names:
            _bars(axes, line)
            continue
        style = DASHES[line.dash]
        if line.low:
            axes.fill_between(line.x, line.low, line.high, color=line.colour, alpha=0.16, linewidth=0)
        marker = "o" if len(line.x) <= 30 else ""
        axes.plot(line.x, line.y, style, color=line.colour, linewidth=1.5, marker=marker, markersize=3.5)
    for reference in chart.references:
        _refer(axes, reference)
    _label(axes, chart.lines)
    axes.set_xlabel(chart.x_label, color=MUTED)
    axes.tick_params(length=0, axis="y")
    axes.tick_params(length=3, color=GRID, axis="x")
    if chart.x_names:
        _name_ticks(figure, axes, chart)
    return figure


def _bars(axes: Axes, line: SweepLine) -> None:
    """Points, with bars from the least to the most."""
    below = [y - low for y, low in zip(line.y, line.low, strict=True)]
    above = [high - y for y, high in zip(line.y, line.high, strict=True)]
    axes.errorbar(line.x, line.y, (below, above), fmt="o", color=line.colour, markersize=4, elinewidth=1)


def _name_ticks(figure: Figure, axes: Axes, chart: SweepChart) -> None:
    """Names below the axis, at a slant, with room for them."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlim(-0.5, len(chart.x_names) - 0.5)
    axes.set_xticks(chart.x_ticks, chart.x_names, rotation=45, ha="right", rotation_mode="anchor")
    figure.set_size_inches(7.6, 4.6)
    axes.set_position((0.085, 0.27, 0.755, 0.58))


def _scale(axes: Axes, chart: SweepChart) -> None:
    """Axes from 0, or logarithmic, with room for references."""
    ys = [y for line in chart.lines for y in (*line.y, *line.high)]
    ys += [each.high for each in chart.references if not each.diagonal]
    xs = [x for line in chart.lines for x in line.x]
    if chart.x_logarithmic:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, max(xs, default=1.0) * 1.03 or 1.0)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if chart.x_ticks:
        axes.xaxis.set_major_locator(FixedLocator(list(chart.x_ticks)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    if chart.y_logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, max(ys, default=1.0) * HEADROOM or 1.0)
        axes.yaxis.set_major_formatter(EngFormatter(sep=""))


def _refer(axes: Axes, reference: Reference) -> None:
    if reference.diagonal:
        low, high = axes.get_xlim()
        axes.plot(
            (low, high), (low, high), "--", color=MUTED, linewidth=0.9, zorder=1, scalex=False, scaley=False
        )
        return
    if reference.high > reference.low:
        axes.axhspan(reference.low, reference.high, color=MUTED, alpha=0.2, linewidth=0)
    else:
        axes.axhline(reference.low, color=MUTED, linewidth=0.9, linestyle="--")
    axes.annotate(
        reference.label, (0.0, reference.high), xycoords=("axes fraction", "data"), xytext=(4, 3),
        textcoords="offset points", color=MUTED, size=8,
    )  # fmt: skip


def _label(axes: Axes, lines: Sequence[SweepLine]) -> None:
    """Names at the right edge, moved apart where lines end close together."""
    ends = [
        (min(max(axes_fraction(axes, line.x[-1], line.y[-1]), 0.0), 1.0), line)
        for line in lines
        if math.isfinite(line.y[-1])
    ]
    for height, line in at_ends(ends, LABEL_GAP):
        label_at_end(axes, height, line.name, line.colour, size=8)
