"""Turns a chart into HTML: paths in an SVG that fills its box whatever its shape, and labels over it.

The SVG has a square of SIDE units that is stretched to the box; strokes keep their width
(`vector-effect: non-scaling-stroke`), and dots are lines of no length with round caps, so that nothing is
distorted and labels keep their size on a phone (SVG 2, sections 8.11 and 13.5).
"""

import json
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path

from markupsafe import Markup, escape

from analysis.charting.axis import TICK_DIGITS, Axis
from analysis.charting.chart import Curve, Figure, Ribbon, Span
from analysis.report.direct_labels import at_ends
from analysis.report.formatting import number

SIDE = 1000
LABEL_GAP = 0.085  # between labels at the ends of lines, as a share of the height
_LABEL_GAP_SMALL = 0.13
_DASHES = {"solid": "none", "dash": "6 4", "dot": "1.5 3.5", "dashdot": "6 3 1.5 3"}
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_ASSETS = Path(__file__).parent / "assets"


def asset(name: str) -> Markup:
    """chart.css or chart.js, as it is: a part of the program."""
    return Markup((_ASSETS / name).read_text())  # noqa: S704


def drawn(figure: Figure) -> Markup:
    """The chart's HTML. Everything from outside is escaped."""
    parts = [
        _svg(figure),
        *_y_ticks(figure.y),
        *_x_ticks(figure),
        *(_span_label(figure.x, span) for span in figure.spans if span.label),
        *_marks(figure),
        *_line_labels(figure),
    ]
    shown = [curve for curve in figure.curves if curve.read_out]
    data = json.dumps(
        {
            "x": {
                "low": figure.x.low,
                "high": figure.x.high,
                "unit": figure.x_unit,
                "day": None if figure.x_first_day is None else figure.x_first_day.isoformat(),
            },
            "y": {
                "low": figure.y.low,
                "high": figure.y.high,
                "unit": figure.unit,
                "log": figure.y.logarithmic,
            },
            "curves": [
                {
                    "name": curve.label or curve.name,
                    "colour": curve.colour,
                    "x": list(curve.x),
                    "y": list(curve.y),
                }
                for curve in shown
            ],
        },
        separators=(",", ":"),
        allow_nan=False,
    )
    return Markup(
        '<div class="chart{}{}" id="chart-{}" role="img" aria-label="{}" data-chart="{}">'
        '<div class="area">{}</div></div>'
    ).format(
        " small" if figure.small else "",
        " labelled" if any(curve.label for curve in figure.curves) else "",
        figure.key,
        f"{figure.title}, {figure.unit}" if figure.unit else figure.title,
        data,
        Markup("").join(parts),
    )


def _svg(figure: Figure) -> Markup:
    grid = "".join(f"M0 {_height(figure.y, tick):.1f}H{SIDE}" for tick in figure.y.ticks)
    parts = [
        *(_span(figure.x, span) for span in figure.spans),
        Markup('<path class="grid" d="{}"/>').format(grid),
        *(_ribbon(figure, ribbon) for ribbon in figure.ribbons),
        *(_curve(figure, curve) for curve in figure.curves),
    ]
    return Markup(
        '<svg viewBox="0 0 {0} {0}" preserveAspectRatio="none" aria-hidden="true">{1}</svg>'
    ).format(SIDE, Markup("").join(parts))


def _curve(figure: Figure, curve: Curve) -> Markup:
    points = [
        (SIDE * figure.x.at(x), None if y is None else _height(figure.y, y))
        for x, y in zip(curve.x, curve.y, strict=True)
    ]
    if curve.dots:
        d = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points if y is not None)
        return Markup('<path class="dots" style="stroke:{}" d="{}"/>').format(curve.colour, d)
    return Markup('<path class="curve" style="stroke:{}" stroke-dasharray="{}" d="{}"/>').format(
        curve.colour, _DASHES.get(curve.dash, "none"), _path(points)
    )


def _path(points: Iterable[tuple[float, float | None]]) -> str:
    """Lines between neighbours that are both known."""
    parts, pen_down = [], False
    for x, y in points:
        if y is not None:
            parts.append(f"{'L' if pen_down else 'M'}{x:.1f} {y:.1f}")
            if not pen_down:
                parts.append("h0")  # a lonely point is seen as well
        pen_down = y is not None
    return "".join(parts)


def _ribbon(figure: Figure, ribbon: Ribbon) -> Markup:
    across = [SIDE * figure.x.at(x) for x in ribbon.x]
    there = [f"{x:.1f} {_height(figure.y, y):.1f}" for x, y in zip(across, ribbon.high, strict=True)]
    back = [f"{x:.1f} {_height(figure.y, y):.1f}" for x, y in zip(across, ribbon.low, strict=True)]
    return Markup('<path class="ribbon{}" style="fill:{}" d="M{}Z"/>').format(
        " faint" if ribbon.faint else "", ribbon.colour, "L".join([*there, *reversed(back)])
    )


def _span(axis: Axis, span: Span) -> Markup:
    start, end = SIDE * axis.at(span.start), SIDE * axis.at(span.end)
    return Markup('<rect class="span" x="{:.1f}" y="0" width="{:.1f}" height="{}"/>').format(
        start, max(0.0, end - start), SIDE
    )


def _span_label(axis: Axis, span: Span) -> Markup:
    return Markup('<span class="span-label" style="left:{:.2f}%">{}</span>').format(
        100 * axis.at(span.start), span.label
    )


def _marks(figure: Figure) -> list[Markup]:
    return [
        Markup('<span class="mark {}{}" style="left:{:.2f}%"><span>{}</span></span>').format(
            mark.kind, " left" if figure.x.at(mark.at) > 0.6 else "", 100 * figure.x.at(mark.at), mark.label
        )
        for mark in figure.marks
    ]


def _y_ticks(axis: Axis) -> list[Markup]:
    return [
        Markup('<span class="tick y" style="top:{:.2f}%">{}</span>').format(
            _height(axis, tick) * 100 / SIDE, short(tick)
        )
        for tick in axis.ticks
    ]


def _x_ticks(figure: Figure) -> list[Markup]:
    ticks = []
    first_day = figure.x_first_day
    days = [] if first_day is None else [first_day + timedelta(days=tick) for tick in figure.x.ticks]
    names = _date_ticks(days) if days else [short(tick) for tick in figure.x.ticks]
    for i, (tick, name) in enumerate(zip(figure.x.ticks, names, strict=True)):
        unit = f"\u00a0{figure.x_unit}" if figure.x_unit and i == len(figure.x.ticks) - 1 else ""
        at = figure.x.at(tick)
        end = " first" if at < 0.02 else " last" if at > 0.93 else ""
        ticks.append(
            Markup('<span class="tick x{}" style="left:{:.2f}%">{}</span>').format(end, 100 * at, name + unit)
        )
    return ticks


def _line_labels(figure: Figure) -> list[Markup]:
    ends = []
    for curve in figure.curves:
        last = next((y for y in reversed(curve.y) if y is not None), None)
        if curve.label and last is not None:
            ends.append((1 - _height(figure.y, last) / SIDE, curve))
    return [
        Markup('<span class="line-label" style="top:{:.2f}%;color:{}">{}</span>').format(
            100 * (1 - height), curve.colour, escape(curve.label)
        )
        for height, curve in at_ends(ends, _LABEL_GAP_SMALL if figure.small else LABEL_GAP)
    ]


def _height(axis: Axis, value: float) -> float:
    """From the top, in the SVG's units."""
    return SIDE * (1 - axis.at(value))


def _date_ticks(days: Sequence[date]) -> list[str]:
    """The beginnings of months by the months' names, with the year where it begins; other days as days."""
    if any(day.day != 1 for day in days):
        return [f"{day.day}\u00a0{day:%b}" for day in days]
    return [
        f"{day:%b}\u00a0{day.year}" if i == 0 or day.month == 1 else f"{day:%b}" for i, day in enumerate(days)
    ]


def day_text(day: date) -> str:
    """As people write it: 7 Mar 2026."""
    return f"{day.day}\u00a0{day:%b}\u00a0{day.year}"


def short(value: float) -> str:
    """A tick's number: 80 k, 1.5 M, 0.02."""
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor * (10 if prefix == "k" else 1):
            return f"{number(round(value / factor, 4), TICK_DIGITS)}\u00a0{prefix}"
    return number(value, TICK_DIGITS)
