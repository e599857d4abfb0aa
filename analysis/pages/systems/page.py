"""The page of systems side by side: one self-contained HTML file, and its picture as PNG and SVG."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure as Drawing

from analysis.pages.charting.chart_model import highest
from analysis.pages.charting.figure import BAD, INK, MUTED, draw, own_style, save
from analysis.pages.page_environment import environment, report_link
from analysis.pages.report.formatting import number
from analysis.pages.systems.charts import SystemCharts, system_charts
from analysis.pages.systems.cut_story import story
from analysis.pages.systems.numbers import systems_table
from analysis.pages.systems.sides import ComparedSystem, read_systems
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.files.whole_files import write_whole

_HERE = Path(__file__).parent
_ROW_INCHES, _HEAD_INCHES, _FOOT_INCHES = 0.92, 0.62, 0.45
_WIDTH_INCHES = 8.6


def write_systems(sweeps: Sequence[SweepDirectory], page: Path) -> tuple[Path, ...]:
    """Write the page, and the picture beside it. Returns their paths. Raises InputError, OSError."""
    systems = read_systems(sweeps)
    drawn = system_charts(systems)
    write_whole(page, render(systems, drawn, sweeps, page))
    with own_style():
        pictures = save({page.stem: _picture(drawn)}, lambda name, form: page.with_name(f"{name}.{form}"))
    return (page, *pictures)


def render(
    systems: Sequence[ComparedSystem],
    drawn: Sequence[SystemCharts],
    sweeps: Sequence[SweepDirectory],
    page: Path,
) -> str:
    """Return the page for the location `page`; links to the runs' reports are relative to it."""
    experiment = sweeps[0].read().experiment
    return (
        environment(_HERE)
        .get_template("systems.html.j2")
        .render(
            name=experiment.get("name") or sweeps[0].name,
            description=experiment.get("description") or "",
            sweeps=[sweep.name for sweep in sweeps],
            systems=systems,
            numbers=systems_table(systems),
            drawn=drawn,
            stories=[(system, story(system.basis[0])) for system in systems if system.runs],
            reports={
                system.name: report_link(system.basis[0].directory, page) for system in systems if system.runs
            },
            left_out=[system for system in systems if system.left_out],
            doubtful=[system.name for system in systems if system.runs and not system.valid],
        )
    )


def _picture(drawn: Sequence[SystemCharts]) -> Drawing:
    """Return a picture with a row for each system: throughput and latency, with common axes."""
    height = _HEAD_INCHES + _ROW_INCHES * len(drawn) + _FOOT_INCHES
    figure = Drawing(figsize=(_WIDTH_INCHES, height))
    grid = figure.subplots(len(drawn), 2, sharex=True, sharey="col", squeeze=False)
    figure.subplots_adjust(
        left=0.2, right=0.985, wspace=0.17, hspace=0.28,
        top=1 - _HEAD_INCHES / height, bottom=_FOOT_INCHES / height,
    )  # fmt: skip
    for column in range(2):
        top = max(highest(each.both[column].series) for each in drawn)
        for axes, each in zip(grid[:, column], drawn, strict=True):
            draw(axes, each.both[column], top)
            axes.set_xlabel("")
        about = drawn[0].both[column]
        left = grid[0][column].get_position().x0
        figure.text(left, 1 - 0.3 / height, about.y.label, color=MUTED, va="center")
        grid[-1][column].set_xlabel(about.x.label, color=MUTED)
    for axes, each in zip(grid[:, 0], drawn, strict=True):
        place = axes.get_position()
        middle = (place.y0 + place.y1) / 2
        figure.text(0.012, middle, each.system.name, weight="bold", color=INK, va="center")
        rate = f"{number(each.usual)} events/s"
        figure.text(0.012, middle - 0.2 / height, rate, color=MUTED, size=7, va="center")
        if not each.system.valid:
            figure.text(0.012, middle - 0.37 / height, "not valid", color=BAD, size=7, va="center")
    return figure
