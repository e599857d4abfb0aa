"""Draws charts of the model with matplotlib, for papers, slides and the README.

The same chart always gives the same bytes: no dates, no random identifiers, text as outlines.

The names at the ends of lines are at their line's height, moved apart if they would overlap: overlapping
labels become a cluster around their mean height, in the same order. The page does the same with pixels
(assets/chart.js).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from analysis.pages.charting.chart_model import (
    HEADROOM,
    NEAR,
    Axis,
    Chart,
    ChartSeries,
    ChartSpan,
    Reference,
    highest,
)
from analysis.pages.report.formatting import tick_text
from experiments.files.whole_files import replacing

INK, MUTED, GRID, BAND, BAD = "#1a1c20", "#5a606a", "#e4e5e8", "#3c424c", "#b3261e"
DPI = 160
BAND_ALPHA, SHADES_MAX = 0.12, 2
NAME_ROW_POINTS = 11
STRIP_POINTS, STRIP_ROW_POINTS, POINTS_PER_INCH = 3, 13, 72
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "hatch.color": GRID,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "text.color": INK,
    "svg.hashsalt": "cutset",
    "svg.fonttype": "path",
}
METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": "Cutset"},
    "svg": {"Date": None, "Creator": "Cutset"},
}
_DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_LABEL_INCHES = 0.127  # between two direct labels
LABEL_SIZE = 8.5
_WIDTH = 0.75  # line width relative to that on a page
T = TypeVar("T")


@contextmanager
def own_style() -> Iterator[None]:
    """Draw in our style only.

    matplotlib also reads a file in the current directory, which could make it run other programs.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def save(figures: Mapping[str, Figure], path_of: Callable[[str, str], Path]) -> tuple[Path, ...]:
    """Write figures as PNG and SVG. path_of: function from a name and a format to its path."""
    written = []
    for name, figure in figures.items():
        for extension, about in METADATA.items():
            path = path_of(name, extension)
            with replacing(path, sync=False) as stream:
                figure.savefig(stream, format=extension, dpi=DPI, metadata=about)
            written.append(path)
    return tuple(written)


def draw(axes: Axes, chart: Chart, top: float | None = None) -> None:
    """Draw all of a chart but its title and the vertical axis' label.

    top: end of the axis, if it is shared.
    """
    _scale(axes, chart, highest(chart.series) if top is None else top)
    for series in chart.series:
        _SERIES[series.form](axes, series)
    for reference in chart.references:
        _refer(axes, chart, reference)
    free: dict[int, float] = {}  # next free pixel by row: overlapping names are left out
    _shade(axes, chart.spans)
    for span in chart.spans:
        _span(axes, chart, span, free)
    _name_lines(axes, chart.series)
    axes.set_xlabel(chart.x.label, color=MUTED)
    axes.tick_params(length=0, axis="y")
    axes.tick_params(length=3, color=GRID, axis="x")


def _scale(axes: Axes, chart: Chart, top: float) -> None:
    """Scale both axes: from 0, logarithmic, or as given, with room for names above."""
    xs = [x for series in chart.series for x in series.x]
    axes.xaxis.set_major_formatter(FuncFormatter(_tick))
    axes.yaxis.set_major_formatter(FuncFormatter(_tick))
    if chart.x.kind == "logarithmic":
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(_tick))
    elif chart.x.kind == "category":
        axes.set_xlim(-0.5, len(chart.x.names) - 0.5)
        axes.set_xticks(
            range(len(chart.x.names)), list(chart.x.names), rotation=45, ha="right", rotation_mode="anchor"
        )
    else:
        axes.set_xlim(*_ends(chart.x, 0.0, max(xs, default=1.0) * 1.03 or 1.0))
    if chart.x.ticks:
        axes.xaxis.set_major_locator(FixedLocator(list(chart.x.ticks)))
        axes.xaxis.set_minor_locator(NullLocator())
    tops = [each.high for each in chart.references if not each.diagonal and _near(each, top)]
    top = max([top, *tops]) or 1.0
    if chart.y.kind == "logarithmic":
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(_tick))
        lowest = min((y for series in chart.series for y in series.y if y is not None and y > 0), default=1.0)
        bottom = lowest / 1.3
        axes.set_ylim(*_ends(chart.y, bottom, bottom * (top / bottom) ** HEADROOM))
    else:
        axes.set_ylim(*_ends(chart.y, 0.0, top * HEADROOM))


def _tick(value: float, _: object) -> str:
    return tick_text(value)


def _ends(axis: Axis, low: float, high: float) -> tuple[float, float]:
    return (low if axis.low is None else axis.low, high if axis.high is None else axis.high)


def _near(reference: Reference, top: float) -> bool:
    return not reference.near or reference.high <= NEAR * top


def _line(axes: Axes, series: ChartSeries) -> None:
    _band(axes, series)
    marker = "o" if series.markers else ""
    axes.plot(series.x, _numbers(series.y), _DASHES[series.dash], color=series.colour,
        linewidth=_WIDTH * series.width, marker=marker, markersize=3.5)  # fmt: skip


def _band(axes: Axes, series: ChartSeries) -> None:
    if len(series.low):
        low, high = _numbers(series.low), _numbers(series.high)
        axes.fill_between(
            series.x, low, high, color=series.colour, alpha=0.1 if series.faint else 0.2, linewidth=0
        )


def _dots(axes: Axes, series: ChartSeries) -> None:
    axes.plot(series.x, _numbers(series.y), "o", color=series.colour, markersize=3)


def _bars(axes: Axes, series: ChartSeries) -> None:
    """Draw dots with bars from low to high."""
    ys, lows, highs = (_numbers(values) for values in (series.y, series.low, series.high))
    below = [y - low for y, low in zip(ys, lows, strict=True)]
    above = [high - y for y, high in zip(ys, highs, strict=True)]
    axes.errorbar(series.x, ys, (below, above), fmt="o", color=series.colour, markersize=4, elinewidth=1)


_SERIES = {"line": _line, "band": _band, "dots": _dots, "bars": _bars}


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]


def _refer(axes: Axes, chart: Chart, reference: Reference) -> None:
    if not _near(reference, highest(chart.series)):
        return
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


def _shade(axes: Axes, spans: Sequence[ChartSpan]) -> None:
    """Shade faults; two at once are darker, more than two are not, so that curves stay visible."""
    last = axes.get_xlim()[1]
    shaded = [
        (each.start, last if each.end is None else each.end)
        for each in spans
        if not (each.hatched or each.other)
    ]
    for begin, end in pairwise(sorted({edge for both in shaded for edge in both})):
        count = sum(first <= begin and end <= beyond for first, beyond in shaded)
        if count:
            alpha = 1 - (1 - BAND_ALPHA) ** min(count, SHADES_MAX)
            axes.axvspan(begin, end, color=BAND, alpha=alpha, linewidth=0, zorder=0)


def _span(axes: Axes, chart: Chart, span: ChartSpan, free: dict[int, float]) -> None:
    """Draw a span, and its name if its row is free. free: the next free pixel of each row."""
    end = axes.get_xlim()[1] if span.end is None else span.end
    if span.other:
        _strip(axes, chart, span, end)
        return
    if span.hatched:
        axes.axvspan(span.start, end, facecolor="none", edgecolor=GRID, hatch="//", linewidth=0, zorder=0)
    if not span.label or (chart.links and span.links and not {*chart.links} & {*span.links}):
        return
    start = axes.transData.transform((span.start, 0))[0]
    if start >= free.get(span.row, 0.0):
        name = axes.annotate(
            span.label, (span.start, 1), xycoords=("data", "axes fraction"), textcoords="offset points",
            xytext=(3, -3 - NAME_ROW_POINTS * span.row), va="top", color=MUTED, size=8.5,
        )  # fmt: skip
        free[span.row] = float(name.get_window_extent().x1)


def _strip(axes: Axes, chart: Chart, span: ChartSpan, end: float) -> None:
    """Draw a strip along the bottom with its name above it; rows are stacked."""
    figure = axes.get_figure(root=True)
    if figure is None or chart.links:
        return
    up = STRIP_ROW_POINTS * span.row + STRIP_POINTS / 2
    place = axes.get_xaxis_transform() + ScaledTranslation(0, up / POINTS_PER_INCH, figure.dpi_scale_trans)
    axes.plot([span.start, end], [0, 0], color=MUTED, alpha=0.55, linewidth=STRIP_POINTS, transform=place,
        solid_capstyle="butt", scalex=False, scaley=False)  # fmt: skip
    if span.label:
        axes.annotate(
            span.label, (span.start, 0), xycoords=("data", "axes fraction"), textcoords="offset points",
            xytext=(2, STRIP_ROW_POINTS * span.row + STRIP_POINTS + 0.5), color=MUTED, size=7,
        )  # fmt: skip


def _name_lines(axes: Axes, series: Sequence[ChartSeries]) -> None:
    """Draw names at the right edge, moved apart if lines end close together."""
    end = axes.get_xlim()[1]
    ends: dict[str, tuple[float, str]] = {}
    for one in series:
        last = [y for x, y in zip(one.x, one.y, strict=True) if y is not None and x <= end]
        if one.label and last and one.label not in ends:
            _, height = axes.transAxes.inverted().transform(axes.transData.transform((end, last[-1])))
            ends[one.label] = (min(max(float(height), 0.0), 1.0), one.colour)
    figure = axes.get_figure(root=True)
    inches = axes.get_position().height * (figure.get_size_inches()[1] if figure else 1.0)
    named = ((height, (name, colour)) for name, (height, colour) in ends.items())
    for height, (name, colour) in at_ends(named, _LABEL_INCHES / inches):
        axes.text(1.01, height, name, color=colour, weight="bold", va="center", size=LABEL_SIZE,
            transform=axes.transAxes)  # fmt: skip


@dataclass(slots=True)
class _Cluster:
    heights: list[float]
    gap: float

    @property
    def low(self) -> float:
        """The height of its lowest label, within 0 to 1."""
        extent = (len(self.heights) - 1) * self.gap
        middle = sum(self.heights) / len(self.heights)
        return min(max(middle - extent / 2, 0.0), max(0.0, 1.0 - extent))

    @property
    def high(self) -> float:
        """Lowest height of the next label above."""
        return self.low + len(self.heights) * self.gap


def at_ends(ends: Iterable[tuple[float, T]], gap: float) -> list[tuple[float, T]]:
    """Return heights for labels of lines that end at these heights (0 to 1), with the labels, upwards."""
    ordered = sorted(ends, key=lambda end: end[0])
    heights = spread_labels([height for height, _ in ordered], gap)
    return [(height, labelled) for height, (_, labelled) in zip(heights, ordered, strict=True)]


def spread_labels(heights: Sequence[float], gap: float) -> list[float]:
    """Return heights (0 to 1, ascending) at which labels are `gap` apart, in the same order."""
    clusters: list[_Cluster] = []
    for height in heights:
        clusters.append(_Cluster([height], gap))
        while len(clusters) > 1 and clusters[-2].high > clusters[-1].low + 1e-9:
            upper = clusters.pop()
            clusters[-1].heights += upper.heights
    return [cluster.low + i * gap for cluster in clusters for i in range(len(cluster.heights))]
