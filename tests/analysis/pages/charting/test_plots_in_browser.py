"""Plots in a real browser: axes of every kind, by pointer and by keys, in print."""

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
    browser,
    has_lines,
    inked,
    opened,
    plot,
    shown_range,
    ticks,
)

__all__ = ["browser", "opened"]  # fixtures
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
    axis = Axis("delay, ms", "ms", from_zero=False)
    return Chart(
        "simple", "Fitted", X, axis, (ChartSeries("a", RED, range(len(values)), values),), small=True
    )


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
PAGES: dict[str, Sequence[Chart]] = {
    "simple": (SIMPLE,),
    "together": tuple(replace(SIMPLE, key=key, together="all") for key in ("simple", "other")),
    "bent": (Chart("simple", "Bent", X, Y, (BENT, ChartSeries("on", RED, (0.0, 4.0), (1.0, 1.0)))),),
    "hatched": (replace(SIMPLE, spans=(ChartSpan("", 1, 2, hatched=True),), references=(FAR,)),),
    "nested": (replace(SIMPLE, spans=NESTED),),
    "few days": (nights(0, 3, 6, 9),),
    "months": (nights(0, 30, 61),),
    "decades": (logarithmic(0.5, 80_000.0),),
    "two decades": (logarithmic(1.0, 150.0),),
    **{f"similar {number}": (fitted(*values),) for number, values in enumerate(ALIKE)},
}  # fmt: skip


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


def test_the_unit_is_on_the_axis_and_numbers_as_in_tables(opened: Opened) -> None:
    page = opened("simple")
    expect(plot(page, "simple").locator(".unit")).to_have_text("events/s at one client")
    assert {"0", "5000", "10 000", "20 000"} <= set(ticks(page, "simple"))


def test_a_gap_is_a_gap_and_what_stands_alone_is_seen(opened: Opened) -> None:
    page = opened("simple")
    plot(page, "simple")
    has_lines(page, "simple", 1)
    drawn_at = """all => { const { uplot } = Plots.of("simple"), { left, top, width, height } = uplot.bbox;
        const dots = uplot.ctx.getImageData(left, top, width, height).data;
        const isRed = (at) => dots[at] > 200 && dots[at + 1] < 60 && dots[at + 3] > 200;
        return all.map((x) => { const column = Math.round(uplot.valToPos(x, "x", true) - left);
          return Array.from({ length: height }, (_, row) => 4 * (row * width + column)).some(isRed); }); }"""
    assert page.evaluate(drawn_at, [0.5, 1.5, 2.5, 3.5]) == [True, False, False, True]


def test_a_line_may_go_back(opened: Opened) -> None:
    page = opened("bent")
    plot(page, "simple")
    has_lines(page, "simple", 2)
    assert inked(page, "simple", BLUE) > 300
    page.locator("#plot-simple").hover(position={"x": 300, "y": 100})
    expect(page.locator("#plot-simple .read-out")).to_contain_text("back")


def test_keys_read_values_aloud_zoom_and_show_all_again(opened: Opened) -> None:
    page = opened("simple")
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


def test_dragging_zooms_all_that_belong_together_and_switches_hold_for_them(opened: Opened) -> None:
    page = opened("together")
    area = plot(page, "simple").locator(".u-over").bounding_box()
    assert area
    page.mouse.move(area["x"] + area["width"] * 0.25, area["y"] + 60)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * 0.5, area["y"] + 60, steps=4)
    page.mouse.up()
    page.wait_for_function("Plots.of('other').range()[1] < 2.5")
    assert shown_range(page, "other") == shown_range(page, "simple") == pytest.approx([1, 2.1], abs=0.1)
    page.locator("[data-switches] .chip").click()
    for key in ("simple", "other"):
        has_lines(page, key, 0)


def test_names_of_nested_faults_are_below_each_other(opened: Opened) -> None:
    names = plot(opened("nested"), "simple").locator(".span-name")
    expect(names).to_have_text(["outer", "inner"])
    outer, inner = (names.nth(i).bounding_box() for i in range(2))
    assert outer
    assert inner
    assert inner["y"] >= outer["y"] + outer["height"] - 1


def test_a_time_without_evidence_is_hatched_and_a_far_reference_is_not_drawn(opened: Opened) -> None:
    page = opened("hatched")
    plot(page, "simple")
    assert inked(page, "simple", "#e4e5e8") > inked(opened("simple"), "simple", "#e4e5e8") + 1000
    assert page.locator("#plot-simple .reference-name").count() == 0


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("few days", [f"{day} Nov" for day in range(1, 11)]),
        ("months", ["Nov 2026", "Dec", "Jan 2027"]),
    ],
)  # fmt: skip
def test_days_are_written_as_dates_and_months_by_their_names(
    opened: Opened, name: str, written: list[str]
) -> None:
    page = opened(name)
    plot(page, "simple")
    assert ticks(page, "simple", axis=0) == written


def test_a_logarithmic_axis_over_many_decades_has_ticks_at_decades_alone(opened: Opened) -> None:
    page = opened("decades")
    plot(page, "simple")
    assert ticks(page, "simple") == ["1", "10", "100", "1000", "10 000", "100 000"]
    page = opened("two decades")
    plot(page, "simple")
    assert {"1", "2", "5", "10", "20", "50", "100"} <= set(ticks(page, "simple"))


@pytest.mark.parametrize("name", [name for name in PAGES if name.startswith("alike")])
def test_an_axis_that_does_not_start_at_zero_has_ticks_that_differ_as_written(
    opened: Opened, name: str
) -> None:
    page = opened(name)
    plot(page, "simple")
    written = ticks(page, "simple")
    assert len(written) >= 2
    assert len(set(written)) == len(written)


def test_print_is_light_and_no_wider_than_paper(opened: Opened) -> None:
    page = opened("simple", color_scheme="dark")
    plot(page, "simple")
    assert inked(page, "simple", "#31353e") > 500  # the grid's
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert inked(page, "simple", "#e4e5e8") > 500
    assert page.locator("#plot-simple").bounding_box()["width"] <= 700
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert inked(page, "simple", "#31353e") > 500
    assert page.evaluate("document.querySelector('#plot-simple canvas').clientWidth") > 700
