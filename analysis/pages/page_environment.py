"""The template environment of all pages, and links from a page to a run's report."""

import functools
import os
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis.pages.charting.chart_page import chart_scripts, chart_styles, embedded, place
from analysis.pages.report.formatting import number
from experiments.records.rundir import RunDirectory

REPORT = Path(__file__).parent / "report"


@functools.cache
def environment(*pages: Path) -> Environment:
    """Return the environment of pages whose folders hold `templates` and `assets`, with escaping.

    pages: folders searched before the report's. `asset(NAME)` gives a CSS or JS file. Calls with the same
    folders share one environment and its compiled templates.
    """
    folders = (*pages, REPORT)

    def asset(name: str) -> Markup:
        """Return a file of the program unescaped; a test keeps them free of "</"."""
        file = next(file for folder in folders if (file := folder / "assets" / name).is_file())
        return Markup(file.read_text())  # noqa: S704

    made = Environment(
        loader=FileSystemLoader([folder / "templates" for folder in folders]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "asset": asset,
        "chart_scripts": chart_scripts,
        "chart_styles": chart_styles,
        "embedded": embedded,
        "number": number,
        "place": place,
    }
    return made


def report_link(run: RunDirectory, page: Path) -> str | None:
    """Return the address of a run's report relative to the page, if the report exists."""
    if not run.report_html.exists():
        return None
    return quote(os.path.relpath(run.report_html.resolve(), page.resolve().parent))
