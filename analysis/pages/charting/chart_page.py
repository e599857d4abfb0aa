"""Embeds charts into pages: the data beside the place of the drawing, and the scripts that draw it.

The library is uPlot, unchanged (assets/uplot, with its licence and checksums). A page is self-contained and
makes no requests.
"""

import math
from dataclasses import MISSING, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from analysis.pages.charting.chart_model import (
    Axis,
    Chart,
    ChartMark,
    ChartSeries,
    ChartSpan,
    Reference,
    Values,
)

ASSETS = Path(__file__).parent / "assets"
LIBRARY = ASSETS / "uplot"
STYLES = (LIBRARY / "uPlot.min.css", ASSETS / "chart.css")
SCRIPTS = (LIBRARY / "uPlot.iife.min.js", ASSETS / "numbers.js", ASSETS / "chart.js", ASSETS / "plot.js")
_KEYS = "Arrow keys read values, plus and minus zoom, 0 shows all."
_SHARP = 'Object.defineProperty(window,"devicePixelRatio",{value:Math.max(2,devicePixelRatio)});'
"""uPlot draws at the screen's resolution at load time; this raises it for prints."""


@cache
def chart_styles() -> Markup:
    """Return the content of a style element."""
    return Markup("\n").join(Markup(path.read_text()) for path in STYLES)  # noqa: S704  (part of the program)


@cache
def chart_scripts() -> Markup:
    """Return the content of a script element; theme.js comes before it."""
    return Markup("\n").join([Markup(_SHARP), *(Markup(path.read_text()) for path in SCRIPTS)])  # noqa: S704


def embedded(chart: Chart) -> Markup:
    """Return a chart's element with its data. All external text is escaped."""
    return Markup('{}<script type="application/json">{}</script></div>').format(
        _opening(chart), htmlsafe_json_dumps(as_json(chart), separators=(",", ":"))
    )


def place(chart: Chart) -> Markup:
    """Return a chart's element; a script of the page supplies the data."""
    return _opening(chart) + Markup("</div>")


def _opening(chart: Chart) -> Markup:
    return Markup(
        '<div class="plot{}" id="plot-{}" tabindex="0" role="slider" aria-label="{}: {}, by {}. {}">'
    ).format(" small" if chart.small else "", chart.key, chart.title, chart.y.label, chart.x.label, _KEYS)


def as_json(chart: Chart, *, spans: bool = True) -> dict[str, Any]:
    """Return the data for chart.js.

    Fields with default values are left out, equal `x` of its series occur once.

    Values that are not finite are gaps. spans: whether to include these; a page with many charts of one run
    has them once.
    """
    places: dict[tuple[float, ...], int] = {}
    series = [
        _changed(replace(one, y=_known(one.y), low=_known(one.low), high=_known(one.high)))
        | {"x": places.setdefault(tuple(one.x), len(places))}
        for one in chart.series
    ]
    found = {"key": chart.key, "title": chart.title, "xs": list(places), "series": series}
    for field in fields(Chart):
        value = getattr(chart, field.name)
        if field.name in found or value == field.default or (field.name == "spans" and not spans):
            continue
        found[field.name] = _plain(value)
    return found


def spans_json(spans: tuple[ChartSpan, ...]) -> list[dict[str, Any]]:
    """Return spans on their own for chart.js."""
    return [_changed(span) for span in spans]


def _plain(value: Any) -> Any:
    if isinstance(value, Axis | ChartMark | Reference | ChartSeries | ChartSpan):
        return _changed(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _changed(value: Any) -> dict[str, Any]:
    """Return the fields that differ from their defaults."""
    found = {field.name: getattr(value, field.name) for field in fields(value)}
    usual = {field.name: field.default for field in fields(value) if field.default is not MISSING}
    return {name: each for name, each in found.items() if name not in usual or each != usual[name]}


def _known(values: Values) -> Values:
    return tuple(value if value is not None and math.isfinite(value) else None for value in values)
