"""Plots in a real browser: all kinds of axes, pointer, keys, and print."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from analysis.pages.charting.chart_model import Axis, Chart, ChartSeries, ChartSpan, Reference, as_day
from analysis.pages.charting.chart_page import embedded
from analysis.pages.page_environment import environment
from tests.analysis.pages.report.browsing import (
    Opened,
    has_lines,
    inked,
    plot,
    shown_range,
    ticks,
)

pytestmark = pytest.mark.browser

RED, BLUE = "#ff0000", "#0000ff"
X, Y = Axis("seconds since start", "s"), Axis("events/s at one client", "events/s")
SIMPLE = Chart("simple", "Simple", X, Y, (ChartSeries("a", RED, (0, 1, 2, 3, 4), (10, 20_000, None, 5, 4)),))
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,">
<style>{}{}</style><script>{}</script></head>
<body><main><div class="chips" data-switches="all"></div>{}</main><script>{}
Plots.start();</script></body></html>"""


def nights(*days: int) -> Chart:
    """Return a chart of these days after 1 November 2026."""
    first = as_day(date(2026, 11, 1))
    x = Axis("night", kind="date", low=first + days[0] - 0.5, high=first + days[-1] + 0.5)
    return Chart(
        "simple", "Nights", x, Y, (ChartSeries("", RED, [first + day for day in days], days, form="dots"),)
    )


def logarithmic(*values: float) -> Chart:
    """Return a chart with these values on a logarithmic axis."""
    return Chart("simple", "Log", X, Axis("delay, ms", "ms", kind="logarithmic"),
        (ChartSeries("a", RED, range(len(values)), values),))  # fmt: skip


def fitted(*values: float) -> Chart:
    """Return a chart whose axis need not start at 0."""
    line = ChartSeries("a", RED, range(len(values)), values)
    return Chart("", "Fitted", X, Axis("delay, ms", "ms", from_zero=False), (line,), small=True)


NESTED = (
    ChartSpan("outer", 0.5, 3),
    ChartSpan("inner", 0.52, 1, row=1),
    ChartSpan("no room", 0.54, 1, row=1),
)
FAR = Reference("r", 9e9, 9e9, near=True)
ALIKE = ((793.45, 793.52), (79_998.2, 79_998.6), (999.9, 1000.1), (0.0021, 0.002101), (3.0, 3.0), (-4.0, 9.0))
BENT = ChartSeries(
    "back", BLUE, (1.0, 3.0, 2.0), (1.0, 2.0, 3.0)
)  # its x goes back: latency beyond saturation
PLOTS = {
    "simple": SIMPLE,
    "bent": Chart("", "Bent", X, Y, (BENT, ChartSeries("on", RED, (0.0, 4.0), (1.0, 1.0)))),
    "hatched": replace(SIMPLE, spans=(ChartSpan("", 1, 2, hatched=True),), references=(FAR,)),
    "nested": replace(SIMPLE, spans=NESTED),
    "days": nights(0, 3, 6, 9),
    "months": nights(0, 30, 61),
    "decades": logarithmic(0.5, 80_000.0),
    "two-decades": logarithmic(1.0, 150.0),
    **{f"similar-{number}": fitted(*values) for number, values in enumerate(ALIKE)},
}
PAGES: dict[str, Sequence[Chart]] = {
    "plots": tuple(replace(chart, key=key) for key, chart in PLOTS.items()),
}


@pytest.fixture(scope="module")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """From a name of PAGES to the page."""
    folder, known = tmp_path_factory.mktemp("plots"), environment().globals

    def page(name: str) -> Path:
        file = folder / f"{name}.html"
        css, theme = (known["asset"](name) for name in ("page.css", "theme.js"))
        styles, scripts = known["chart_styles"](), known["chart_scripts"]()
        places = "".join(embedded(chart) for chart in PAGES[name])
        button = '<button id="theme"></button>'
        file.write_text(PAGE.format(css, styles, theme, button + places, scripts))
        return file

    return page


def said(page: Page) -> str:
    """Return the text for screen readers."""
    text = page.locator("#plot-simple [aria-live]").text_content() or ""
    return text.replace("\u202f", " ").replace("\u00a0", " ")


def test_axes_have_their_unit_and_ticks_as_tables_and_calendars_write_them(opened: Opened) -> None:
    page = opened("plots")

    def written(key: str, axis: int = 1) -> list[str]:
        plot(page, key)
        return ticks(page, key, axis)

    expect(plot(page, "simple").locator(".unit")).to_have_text("events/s at one client")
    assert {"0", "5000", "10 000", "20 000"} <= set(written("simple"))
    assert written("days", 0) == [f"{day} Nov" for day in range(1, 11)]
    assert written("months", 0) == ["Nov 2026", "Dec", "Jan 2027"]
    assert written("decades") == ["1", "10", "100", "1000", "10 000", "100 000"]
    assert {"1", "2", "5", "10", "20", "50", "100"} <= set(written("two-decades"))
    for number in range(len(ALIKE)):  # an axis that does not start at 0
        found = written(f"similar-{number}")
        assert len(set(found)) == len(found) >= 2


def test_gaps_single_points_and_backward_lines_are_drawn(opened: Opened) -> None:
    page = opened("plots")
    plot(page, "simple")
    has_lines(page, "simple", 1)
    drawn_at = """all => { const { uplot } = Plots.of("simple"), { left, top, width, height } = uplot.bbox;
        const dots = uplot.ctx.getImageData(left, top, width, height).data;
        const isRed = (at) => dots[at] > 200 && dots[at + 1] < 60 && dots[at + 3] > 200;
        return all.map((x) => { const column = Math.round(uplot.valToPos(x, "x", true) - left);
          return Array.from({ length: height }, (_, row) => 4 * (row * width + column)).some(isRed); }); }"""
    assert page.evaluate(drawn_at, [0.5, 1.5, 2.5, 3.5]) == [True, False, False, True]
    plot(page, "bent")
    has_lines(page, "bent", 2)
    assert inked(page, "bent", BLUE) > 300
    page.locator("#plot-bent").hover(position={"x": 300, "y": 100})
    expect(page.locator("#plot-bent .read-out")).to_contain_text("back")


def test_names_of_nested_faults_are_stacked_and_far_references_omitted(opened: Opened) -> None:
    page = opened("plots")
    names = plot(page, "nested").locator(".span-name")
    expect(names).to_have_text(["outer", "inner"])
    outer, inner = (names.nth(i).bounding_box() for i in range(2))
    assert outer
    assert inner
    assert inner["y"] >= outer["y"] + outer["height"] - 1
    for key in ("simple", "hatched"):
        plot(page, key)
    assert inked(page, "hatched", "#e4e5e8") > inked(page, "simple", "#e4e5e8") + 1000  # without evidence
    assert page.locator("#plot-hatched .reference-name").count() == 0


def test_keys_read_values_zoom_and_reset(opened: Opened) -> None:
    page = opened("plots")
    slider = plot(page, "simple")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert said(page) == "1 s, a 20 000 events/s"
    expect(slider).to_have_attribute("aria-valuetext", "1\u00a0s")
    expect(slider.locator(".read-out")).to_be_visible()
    page.keyboard.press("ArrowRight")
    assert said(page) == "2 s, a not measured"
    page.keyboard.press("End")
    assert said(page) == "4 s, a 4 events/s"
    whole = shown_range(page, "simple")
    page.keyboard.press("+")
    near = shown_range(page, "simple")
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 2, abs=0.1)
    assert near[0] < 4 <= near[1]
    page.keyboard.press("Home")  # what is read stays in sight
    assert shown_range(page, "simple")[0] == 0
    page.keyboard.press("-")
    assert shown_range(page, "simple") == whole
    page.keyboard.press("+")
    page.keyboard.press("0")
    assert shown_range(page, "simple") == whole


def test_print_is_light_and_no_wider_than_paper(opened: Opened) -> None:
    page = opened("plots", color_scheme="dark")
    plot(page, "simple")
    assert inked(page, "simple", "#31353e") > 500  # the grid's
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert inked(page, "simple", "#e4e5e8") > 500
    assert page.locator("#plot-simple").bounding_box()["width"] <= 700
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert inked(page, "simple", "#31353e") > 500
    assert page.evaluate("document.querySelector('#plot-simple canvas').clientWidth") > 700
