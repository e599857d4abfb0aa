"""The page of a comparison: one HTML file with everything in it."""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from jinja2 import ChoiceLoader, Environment, FileSystemLoader
from markupsafe import Markup

from analysis.pages.comparing import metrics, timelines
from analysis.pages.comparing.settings import settings
from analysis.pages.comparing.sides import Side
from analysis.pages.report.page import environment as report_environment
from experiments.whole_files import write_whole

_HERE = Path(__file__).parent
_SECTIONS = {
    "throughput": "Throughput",
    "latency": "Latency",
    "recovery": "Recovery",
    "events": "Events",
    "fidelity": "Machine",
    "measures": "Measured by the system",
}


def write_page(sides: Sequence[Side], file: Path) -> None:
    """Write the page; links to the runs' reports are relative to it. Raises OSError."""
    write_whole(file, render(sides, file))


def render(sides: Sequence[Side], file: Path) -> str:
    """The page as it stands at `file`."""
    rows = metrics.compared(sides)
    return (
        environment()
        .get_template("comparison.html.j2")
        .render(
            sides=sides,
            title=_title(sides),
            reports={side.letter: _link(side, file) for side in sides},
            settings=settings(sides),
            sections=[
                (title, found)
                for section, title in _SECTIONS.items()
                if (found := [row for row in rows if row.section == section and not row.nothing])
            ],
            nothing=[row.title for row in rows if row.nothing],
            standing_out=metrics.standing_out(rows),
            overall=timelines.overall(sides),
            regions=timelines.by_region(sides),
            other_faults=timelines.other_faults(sides),
            recoveries=metrics.recoveries(sides),
            doubtful=[side for side in sides if not side.record.valid],
        )
    )


def environment() -> Environment:
    """The report's surroundings (its macros and looks), with the templates of comparisons."""
    made = report_environment()
    made.loader = ChoiceLoader(
        [FileSystemLoader(_HERE / "templates"), *([made.loader] if made.loader else [])]
    )
    made.globals["comparing_asset"] = _asset
    return made


def _asset(name: str) -> Markup:
    return Markup((_HERE / "assets" / name).read_text())  # noqa: S704  (a part of the program)


def _title(sides: Sequence[Side]) -> str:
    names = list(dict.fromkeys(side.experiment for side in sides))
    return " and ".join(names)


def _link(side: Side, file: Path) -> str | None:
    """The report of the run as seen from the page, if it is there."""
    report = side.directory.report_html
    if not report.exists():
        return None
    return quote(os.path.relpath(report.resolve(), file.resolve().parent))
