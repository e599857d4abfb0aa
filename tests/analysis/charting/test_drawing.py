"""Charts as HTML: gaps stay gaps, lonely points are seen, and no name can become markup."""

import json
import re
from datetime import date
from html import unescape

import pytest

from analysis.charting.axis import Axis, linear, spanning
from analysis.charting.chart import Curve, Figure, Mark, Ribbon, Span
from analysis.charting.drawing import drawn, short

HOSTILE = '"><script>boom()</script>'


def figure(curves: list[Curve], **more: object) -> Figure:
    """A chart of one to four."""
    looks = {"key": "k", "title": "T", "unit": "ms", "x": spanning(0, 4), "y": linear([0, 4])} | more
    return Figure(curves=curves, **looks)  # type: ignore[arg-type]


def path(html: str, kind: str) -> str:
    found = re.search(rf'class="{kind}"[^>]* d="([^"]*)"', html)
    assert found
    return found[1]


def test_a_gap_lifts_the_pen() -> None:
    html = drawn(figure([Curve("a", "red", [0, 1, 2, 3, 4], [1, 2, None, 3, 4])]))
    assert path(html, "curve").count("M") == 2


def test_a_point_without_neighbours_is_seen() -> None:
    assert "h0" in path(drawn(figure([Curve("a", "red", [1], [1])])), "curve")


def test_the_highest_value_stands_at_the_top() -> None:
    assert path(drawn(figure([Curve("a", "red", [0, 4], [0, 4])])), "curve") == "M0.0 1000.0h0L1000.0 0.0"


def test_names_are_escaped_everywhere() -> None:
    html = drawn(
        figure(
            [Curve(HOSTILE, "red", [0, 1], [1, 2], label=HOSTILE)],
            title=HOSTILE,
            spans=[Span(HOSTILE, 1, 2)],
            marks=[Mark(HOSTILE, 3)],
        )
    )
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 4


def test_what_the_pointer_reads_is_what_is_drawn() -> None:
    html = drawn(figure([Curve("a", "red", [0, 1], [1, None]), Curve("b", "red", [0], [1], read_out=False)]))
    found = re.search(r'data-chart="([^"]*)"', html)
    assert found
    data = json.loads(unescape(found[1]))
    assert [(curve["name"], curve["x"], curve["y"]) for curve in data["curves"]] == [("a", [0, 1], [1, None])]


@pytest.mark.parametrize(
    ("first_day", "ticks", "written"),
    [
        (date(2026, 11, 1), (0, 3, 6, 9), ["1 Nov", "4 Nov", "7 Nov", "10 Nov"]),
        (date(2026, 11, 28), (0, 3), ["28 Nov", "1 Dec"]),
        (date(2026, 11, 1), (0, 30, 61), ["Nov 2026", "Dec", "Jan 2027"]),
    ],
)
def test_days_are_written_as_dates_and_months_by_their_names(
    first_day: date, ticks: tuple[float, ...], written: list[str]
) -> None:
    html = drawn(figure([], x_first_day=first_day, x_unit="", x=Axis(-0.5, ticks[-1] + 0.5, ticks)))
    found = re.findall(r'class="tick x[^>]*>([^<]*)<', html)
    assert [name.replace("\u00a0", " ") for name in found] == written


def test_a_band_goes_there_and_back() -> None:
    html = drawn(figure([], ribbons=[Ribbon("red", [0, 4], [1, 1], [2, 2])]))
    assert path(html, "ribbon") == "M0.0 500.0L1000.0 500.0L1000.0 750.0L0.0 750.0Z"


def test_ticks_are_short() -> None:
    assert [short(value) for value in (0, 0.02, 1500, 80_000, 2.5e6)] == [
        "0",
        "0.02",
        "1500",
        "80\u00a0k",
        "2.5\u00a0M",
    ]
