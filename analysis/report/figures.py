"""The report's figures as PNG and SVG, for papers, slides and the README: throughput, latency, links,
topology.

Drawn with matplotlib from the same charts as the page's plots. Writing them again gives the same bytes: no
dates, no random identifiers, text as outlines. A figure of an invalid run says so in the figure.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter

from analysis.report.bands import NAME_ROWS, Band
from analysis.report.charts import Chart, Line, latency_chart, link_charts, throughput_chart
from analysis.report.clocks import Track, tracks
from analysis.report.direct_labels import at_ends
from analysis.report.reading import RunRecord
from analysis.report.topology_drawing import LINE_HEIGHT, DrawnLink, drawing, inside_at
from experiments.rundir import RunDirectory

NAME_ROW_POINTS = 11
INK, MUTED, GRID, BAND, BAD = "#1a1c20", "#5a606a", "#e4e5e8", "#3c424c20", "#b3261e"
LABEL_GAP = 0.052  # of the axis' height, between two direct labels
HEADROOM = 1.14  # above the highest value, for the names of faults
DPI = 160
LINKS_DRAWN = 12  # small multiples that can still be read on a page
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
DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_GROUPS_DRAWN = {"p50": "-", "p99": ":"}  # on paper, p95 would only crowd the two
_REGION_BOX = "round4,pad=0.9,rounding_size=1.2"


@contextmanager
def own_style() -> Iterator[None]:
    """Draw in our style and no other: matplotlib also reads a file of the folder that it is started in, which
    could let it call other programs.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def write_figures(record: RunRecord, run: RunDirectory) -> tuple[Path, ...]:
    """Draw what this run has data for, as `figures/<name>.png` and `.svg`; returns their paths."""
    run.figures.mkdir(exist_ok=True)
    throughput, latency = throughput_chart(record), latency_chart(record)
    links = link_charts(record) or link_charts(record, "events_per_s")
    drawn_clocks = tracks(record)
    with own_style():
        figures = {
            "throughput": _timeline(record, throughput) if throughput.lines else None,
            "latency": _timeline(record, latency) if latency.lines else None,
            "links": _small_multiples(record, links[:LINKS_DRAWN]) if links else None,
            "topology": _topology(record) if record.regions else None,
            "clocks": _clocks(record, drawn_clocks) if drawn_clocks else None,
        }
        return tuple(path for name, figure in figures.items() if figure for path in _save(run, name, figure))


def _save(run: RunDirectory, name: str, figure: Figure) -> Iterable[Path]:
    for extension, about in METADATA.items():
        path = run.figure(name, extension)
        figure.savefig(path, format=extension, dpi=DPI, metadata=about)
        yield path


def _timeline(record: RunRecord, chart: Chart) -> Figure:
    figure = Figure(figsize=(7.6, 3.3))
    axes = figure.add_axes((0.085, 0.145, 0.86, 0.68))
    figure.text(0.012, 0.94, chart.title, weight="bold", size=11, va="center")
    figure.text(0.012, 0.875, chart.y_label + _lines_said(chart), color=MUTED, va="center")
    _mark_invalid(record, figure)
    lines = [line for line in chart.lines if line.group in _GROUPS_DRAWN or not line.group]
    _draw(axes, chart, lines, _top(lines))
    axes.set_xlabel("seconds since start", color=MUTED)
    return figure


def _lines_said(chart: Chart) -> str:
    drawn = {line.group for line in chart.lines} & set(_GROUPS_DRAWN)
    return "; solid p50, dotted p99" if len(drawn) > 1 else ""


def _draw(axes: Axes, chart: Chart, lines: Sequence[Line], top: float) -> None:
    """Bands, lines, axes and direct labels of one plot."""
    for line in lines:
        style = _GROUPS_DRAWN.get(line.group, DASHES[line.dash])
        values = [float("nan") if y is None else y for y in line.y]
        axes.plot(line.x, values, style, color=line.colour, linewidth=1.0 if line.group == "p99" else 1.5)
        if line.bar:
            bars = [0.0 if bar is None else bar for bar in line.bar]
            low, high = ([y + sign * bar for y, bar in zip(values, bars, strict=True)] for sign in (-1, 1))
            axes.fill_between(line.x, low, high, color=line.colour, alpha=0.2, linewidth=0)
    axes.set_xlim(0, chart.x_end_s)
    if chart.logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_ylim(top=top**HEADROOM)
    else:
        axes.set_ylim(0, top * HEADROOM)
        axes.yaxis.set_major_formatter(
            EngFormatter(sep="") if chart.unit != "ms" else FuncFormatter(lambda v, _: f"{v:,.0f}")
        )
    axes.tick_params(length=0, axis="y")
    axes.tick_params(length=3, color=GRID, axis="x")
    free = [0.0] * NAME_ROWS  # in pixels, by row: names that would overlap are left out
    for band in chart.bands:
        end_s = chart.x_end_s if band.end_s is None else band.end_s
        axes.axvspan(band.start_s, end_s, color=BAND, linewidth=0, zorder=0)
        if not chart.links or {*chart.links} & {*band.links}:
            _name_band(axes, band, free)
    _label_directly(axes, lines, chart.x_end_s)


def _name_band(axes: Axes, band: Band, free: list[float]) -> None:
    """Its name, if it begins beyond what is `free` in its row; moves that on."""
    name = axes.annotate(
        band.label, (band.start_s, 1), xycoords=("data", "axes fraction"),
        xytext=(3, -3 - band.row * NAME_ROW_POINTS),
        textcoords="offset points", va="top", color=MUTED, size=8.5,
    )  # fmt: skip
    extent = name.get_window_extent()
    if extent.x0 < free[band.row]:
        name.remove()
    else:
        free[band.row] = float(extent.x1)


def _label_directly(axes: Axes, lines: Sequence[Line], end_s: float) -> None:
    """Names at the right edge, moved apart where lines end close together."""
    ends: dict[str, tuple[float, Line]] = {}
    for line in lines:
        last = [y for x, y in zip(line.x, line.y, strict=True) if y is not None and x <= end_s]
        if last and line.name not in ends:
            ends[line.name] = (axes_fraction(axes, end_s, last[-1]), line)
    gap = LABEL_GAP if axes.get_position().height > 0.5 else 2 * LABEL_GAP
    for height, line in at_ends(ends.values(), gap):
        label_at_end(axes, height, line.name, line.colour)


def label_at_end(axes: Axes, height: float, name: str, colour: str, size: float | None = None) -> None:
    """Write a line's name beside the right edge, in its colour."""
    axes.text(
        1.008, height, name, color=colour, weight="bold", size=size, va="center", transform=axes.transAxes
    )


def axes_fraction(axes: Axes, x: float, y: float) -> float:
    """How high a point of the plot's data stands, from 0 to 1."""
    return float(axes.transAxes.inverted().transform(axes.transData.transform((x, y)))[1])


def _top(lines: Iterable[Line]) -> float:
    return max((y for line in lines for y in line.y if y is not None), default=0.0) or 1.0


def _small_multiples(record: RunRecord, charts: Sequence[Chart]) -> Figure:
    """One plot per link, all on one scale."""
    columns = min(3, len(charts))
    rows = -(-len(charts) // columns)
    figure = Figure(figsize=(3.1 * columns, 1.75 * rows + 0.6))
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    height = figure.get_size_inches()[1]
    figure.subplots_adjust(
        left=0.065, right=0.945, wspace=0.34, hspace=0.42, top=1 - 0.72 / height, bottom=0.42 / height
    )
    figure.text(0.012, 1 - 0.17 / height, "What crossed the links", weight="bold", size=11, va="center")
    figure.text(0.012, 1 - 0.36 / height, charts[0].y_label, color=MUTED, va="center")
    _mark_invalid(record, figure)
    top = max(_top(chart.lines) for chart in charts)
    for chart, axes in zip(charts, grid.flat, strict=False):
        _draw(axes, chart, chart.lines, top)
        axes.set_title(chart.title, loc="left", size=9, weight="bold", pad=4)
    for axes in grid.flat[len(charts) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("seconds since start", color=MUTED)
    return figure


def _clocks(record: RunRecord, clocks: Sequence[Track]) -> Figure:
    """One plot per clock, each on a scale of its own: what is left beside its straight line, with its bar."""
    columns = min(3, len(clocks))
    rows = -(-len(clocks) // columns)
    figure = Figure(figsize=(3.1 * columns, 1.9 * rows + 0.6))
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    height = figure.get_size_inches()[1]
    figure.subplots_adjust(
        left=0.085, right=0.975, wspace=0.36, hspace=0.5, top=1 - 0.8 / height, bottom=0.42 / height
    )
    figure.text(0.012, 1 - 0.17 / height, "Clocks", weight="bold", size=11, va="center")
    about = "offset beside a straight line, µs; the band is all that packets leave open"
    figure.text(0.012, 1 - 0.36 / height, about, color=MUTED, va="center")
    _mark_invalid(record, figure)
    for track, axes in zip(clocks, grid.flat, strict=False):
        axes.fill_between(track.x, track.low_us, track.high_us, color=track.colour, alpha=0.3, linewidth=0)
        axes.plot(track.x, (track.low_us + track.high_us) / 2, color=track.colour, linewidth=1.3)
        axes.set_title(f"{track.machine}: {track.line}", loc="left", size=8.5, weight="bold", pad=4)
        axes.set_xlim(track.x[0], track.x[-1])
        axes.set_ylim(-1.1 * track.top_us, 1.1 * track.top_us)
        axes.tick_params(length=0, axis="y")
    for axes in grid.flat[len(clocks) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("seconds since start", color=MUTED)
    return figure


def _topology(record: RunRecord) -> Figure:
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


def _mark_invalid(record: RunRecord, figure: Figure) -> None:
    if not record.valid:
        figure.text(0.988, 0.985, "from an invalid run", color=BAD, weight="bold", ha="right", va="top")
