"""The page in a real browser, opened from a file: drawing, interaction, and no requests."""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.browsing import (
    PHONE,
    Opened,
    double_click,
    has_lines,
    inked,
    no_sideways_scroll,
    plot,
    shown_range,
    ticks,
)
from topologies.drawing.palette import colour_of

pytestmark = pytest.mark.browser

Reported = Callable[[str], RunDirectory]


@pytest.fixture
def page_of(reported: Reported) -> Callable[[str], Path]:
    """From a scenario's name to its report."""
    return lambda name: reported(name).report_html


def background(page: Page) -> tuple[int, ...]:
    """Return the page's background colour."""
    written = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return tuple(int(v) for v in re.findall(r"\d+", written)[:3])


def unfold(page: Page) -> None:
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")


def fits(page: Page, table: str) -> bool:
    """Whether a table needs no scrolling to the side."""
    around = page.locator(f".scroll:has(> #table-{table})")
    return bool(around.evaluate("one => one.scrollWidth <= one.clientWidth"))


def test_plots_have_a_line_for_every_region_in_its_colour_and_grey_faults(opened: Opened) -> None:
    page = opened()
    undrawn = "document.querySelectorAll('.plot:not([data-drawn])').length"
    assert page.evaluate(undrawn) > 0
    for key, lines in (("throughput", 4), ("latency", 8)):  # latency: p50 and p99
        expect(plot(page, key).locator(".span-name")).to_have_text(["cut r2\u2013r3"])
        has_lines(page, key, lines)
        assert page.evaluate(f"Math.min(...Plots.of('{key}').shown().map((one) => one.x.length))") > 20
    grey = inked(page, "throughput", "#eaeaeb")  # --band over --surface
    area = plot(page, "throughput").locator(".u-over").bounding_box()
    assert area
    dots = area["width"] * area["height"] * page.evaluate("devicePixelRatio ** 2")
    assert grey / dots == pytest.approx((41 - 19) / 60, abs=0.06)
    switches = [page.locator("#region-switches .chip", has_text=f"r{number}") for number in range(4)]
    for switch in switches[1:]:
        expect(switch).to_have_attribute("aria-pressed", "true")
        switch.click()
        expect(switch).to_have_attribute("aria-pressed", "false")
    has_lines(page, "throughput", 1)
    has_lines(page, "latency", 2)
    assert [inked(page, "throughput", colour_of(i)) > 100 for i in range(4)] == [True, False, False, False]
    switches[1].click()
    has_lines(page, "throughput", 2)
    assert page.evaluate(f"dispatchEvent(new Event('beforeprint')), {undrawn}") == 0  # all are printed


def test_overlapping_fault_names_show_the_first_until_there_is_room(opened: Opened) -> None:
    page = opened("crowded")
    names = plot(page, "throughput").locator(".span-name")
    rows_apart = ["cut r2\u2013r3", "cut r0\u2013r1", "cut r1\u2013r2"]  # one within the other
    expect(names).to_have_text([*rows_apart, "cut r0\u2013r3"])
    boxes = names.evaluate_all("all => all.map((one) => one.getBoundingClientRect().toJSON())")
    for outer, inner in pairwise(boxes[:3]):
        assert outer["right"] > inner["left"]  # so they stand below each other
        assert outer["bottom"] <= inner["top"] + 1
    page.get_by_role("button", name="start of cut", exact=True).click()
    expect(names).to_have_text([*rows_apart, "cut r0\u2013r2"])


def test_every_wide_area_link_has_a_plot_with_both_directions_also_in_events(opened: Opened) -> None:
    page = opened()
    places = page.locator("#links .plot")
    assert places.count() == 6
    for key in places.evaluate_all("all => all.map((one) => one.id.slice(5))"):
        plot(page, key)
        has_lines(page, key, 2)
    note = page.locator("#note-link-r0-r3")
    expect(note).to_contain_text("Gbit/s")
    page.locator("#quantity-switches .chip", has_text="events/s").click()
    expect(note).to_contain_text("events/s")


def test_values_are_read_and_percentiles_and_axis_switched(
    opened: Opened,
) -> None:
    page = opened()
    area = plot(page, "throughput").locator(".u-over").bounding_box()
    assert area
    page.mouse.move(area["x"] + area["width"] / 4, area["y"] + 60)
    shown = page.locator("#plot-throughput .read-out")
    expect(shown).to_contain_text(re.compile(r"^1[45]\.\d\ss"))  # as near as a pixel
    for region in ("r0", "r1", "r2", "r3"):
        expect(shown).to_contain_text(re.compile(rf"{region} (79|80)\s\d\d\d\sevents/s"))
    details = page.locator("details[data-chart=throughput]")
    details.locator("summary").click()
    expect(details.locator("tbody tr")).to_have_count(300)
    headings = ["time, s", *(f"r{i}, events/s" for i in range(4))]
    expect(details.locator("thead th")).to_have_text(headings, use_inner_text=True)
    plot(page, "latency")
    before = ticks(page, "latency")
    page.locator("#latency-switches .chip", has_text="p95").click()
    has_lines(page, "latency", 12)
    page.locator("#latency-switches .chip", has_text="log").click()
    expect(page.locator("#latency-switches .chip", has_text="log")).to_have_attribute("aria-pressed", "true")
    assert ticks(page, "latency") != before


def test_zooming_one_plot_zooms_all_and_a_double_click_shows_the_whole_run(opened: Opened) -> None:
    page = opened()
    area = plot(page, "throughput").locator(".u-over").bounding_box()
    assert area
    page.mouse.move(area["x"] + area["width"] * 0.25, area["y"] + 60)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * 0.5, area["y"] + 60, steps=4)
    page.mouse.up()
    page.wait_for_function("Plots.of('latency').range()[1] < 31")
    assert shown_range(page, "throughput") == pytest.approx([15, 30], abs=0.3)
    assert shown_range(page, "latency") == shown_range(page, "throughput")
    double_click(page, area["x"] + area["width"] * 0.5, area["y"] + 60)
    page.wait_for_function("Plots.of('latency').range()[1] > 59")
    assert shown_range(page, "throughput") == [0.0, 60.0]
    page.locator("#range-switches .chip", has_text="start of cut").click()
    assert shown_range(page, "throughput") == [17.0, 29.0]


def test_a_click_on_a_heading_sorts_and_another_reverses(opened: Opened) -> None:
    page = opened()
    heading = page.locator("#table-fidelity thead th", has_text="p99")
    column = page.locator("#table-fidelity tbody td:nth-child(5)")
    heading.locator("button").click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    rising = [float(text.split()[0]) for text in column.all_text_contents()]
    assert rising == sorted(rising)
    assert len(set(rising)) > 1
    heading.locator("button").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert [float(text.split()[0]) for text in column.all_text_contents()] == rising[::-1]


def test_the_theme_is_the_systems_until_the_user_chooses(opened: Opened) -> None:
    page = opened(color_scheme="dark")
    assert max(background(page)) < 60
    plot(page, "throughput")
    grids = {"light": "#e4e5e8", "dark": "#31353e"}
    page.locator("#theme").click()
    assert min(background(page)) > 200
    assert [inked(page, "throughput", grid) > 500 for grid in grids.values()] == [True, False]
    page.locator("#theme").click()
    assert max(background(page)) < 60
    assert [inked(page, "throughput", grid) > 500 for grid in grids.values()] == [False, True]


@pytest.mark.parametrize("name", ["invalid", "crashed", "hostile"])
def test_on_a_phone_wide_tables_are_cards(opened: Opened, name: str) -> None:
    page = opened(name, viewport=PHONE, has_touch=True, is_mobile=True)
    unfold(page)
    for key in page.locator(".plot").evaluate_all("all => all.map((one) => one.id.slice(5))")[:2]:
        expect(plot(page, key).locator("canvas")).to_be_visible()
        assert page.evaluate("key => Plots.of(key).shown().length", key) > 1
        touch = f"getComputedStyle(document.querySelector('#plot-{key} .u-over')).touchAction"
        assert page.evaluate(touch) != "none"  # a plot does not hold the finger that scrolls
    assert no_sideways_scroll(page)
    for table in ("fidelity", "expectations") if name == "invalid" else ():
        assert fits(page, table)
        around = page.locator(f"#table-{table}")
        column = around.locator("thead th").nth(1).inner_text()
        named = "one => getComputedStyle(one, '::before').content"
        assert column in around.locator("tbody td").nth(1).evaluate(named)


def test_on_a_laptop_the_widest_tables_fit_and_an_invalid_run_keeps_its_verdict_in_sight(
    opened: Opened,
) -> None:
    page = opened("invalid", viewport={"width": 1280, "height": 800})
    unfold(page)
    for table in ("fidelity", "pairs-cut"):
        assert fits(page, table), table  # with reasons beside what is not proven
    page.locator("#what-ran").scroll_into_view_if_needed()
    expect(page.locator(".banner")).to_be_in_viewport()


def test_drawing_causes_no_layout_shift_and_labels_do_not_overlap(opened: Opened) -> None:
    page = opened("narrow")
    names = plot(page, "throughput").locator(".line-name")
    shift = page.evaluate(
        """() => new Promise((resolve) => new PerformanceObserver((list) =>
             resolve(list.getEntries().reduce((sum, entry) => sum + entry.value, 0))
           ).observe({ type: 'layout-shift', buffered: true }) || setTimeout(() => resolve(0), 300))"""
    )
    assert shift < 0.01
    boxes = names.evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect()).map((box) => [box.top, box.bottom])"
    )
    assert len(boxes) == 4
    assert all(above[1] <= below[0] + 3 for above, below in pairwise(sorted(boxes)))
