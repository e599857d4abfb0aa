"""From a point of a plot to the command for its packets, in a browser: by pointer, by keys, on a phone."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.browsing import PHONE, Opened, double_click, no_sideways_scroll, plot

pytestmark = pytest.mark.browser

END_S = 60.0


@pytest.fixture
def page_of(reported: Callable[[str], RunDirectory]) -> Callable[[str], Path]:
    """From a scenario's name to its report."""
    return lambda name: reported(name).report_html


def place(page: Page, key: str, at_s: float) -> tuple[float, float]:
    """Return the screen position of a time, in a plot that shows the whole run."""
    area = plot(page, key).locator(".u-over").bounding_box()
    assert area
    return area["x"] + area["width"] * at_s / END_S, area["y"] + 50


def command(page: Page) -> str:
    """Return the command that the panel shows."""
    return page.locator("#moment-command").inner_text()


def test_a_click_gives_the_command_to_copy(opened: Opened) -> None:
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    page.mouse.click(*place(page, "throughput", 19.1))
    expect(page.locator("#moment")).to_be_visible()
    found = re.fullmatch(r"cutset packets (/\S+) --from (\d+\.\d{3}) --to (\d+\.\d{3})", command(page))
    assert found
    assert RunDirectory(Path(found.group(1))).run_json.is_file()
    from_s, to_s = float(found.group(2)), float(found.group(3))
    assert to_s - from_s == pytest.approx(0.2)
    assert from_s - 0.2 <= 19.1 <= to_s + 0.2  # as near as a pixel
    assert plot(page, "throughput").locator(".cursor").is_visible()
    page.locator("#moment-copy").click()
    expect(page.locator("#moment-copy")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == command(page)
    page.keyboard.press("Escape")
    expect(page.locator("#moment")).to_be_hidden()
    expect(plot(page, "throughput")).to_be_focused()


def test_a_click_on_a_link_names_it(opened: Opened) -> None:
    page = opened()
    page.mouse.click(*place(page, "link-r2-r3", 19.25))
    expect(page.locator("#moment")).to_be_visible()
    assert command(page).endswith(" --link r2-r3")
    area, panel = page.locator("#plot-link-r2-r3").bounding_box(), page.locator("#moment").bounding_box()
    assert area
    assert panel
    assert area["y"] >= 0  # the plot that was clicked stays in sight
    assert area["y"] + area["height"] <= panel["y"] + 1


def test_moments_can_be_opened_and_closed_by_keys(opened: Opened) -> None:
    page = opened()
    slider = plot(page, "throughput")
    slider.focus()
    expect(slider).to_have_attribute("role", "slider")
    expect(slider).to_have_attribute("aria-valuetext", "19.0\u201319.2 s")  # where the first fault begins
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "19.2\u201319.4 s")
    page.keyboard.press("Shift+ArrowLeft")
    expect(slider).to_have_attribute("aria-valuetext", "17.2\u201317.4 s")
    page.keyboard.press("Home")
    expect(slider).to_have_attribute("aria-valuetext", "0.0\u20130.2 s")
    page.keyboard.press("End")
    expect(slider).to_have_attribute("aria-valuetext", "59.8\u201360.0 s")
    page.keyboard.press("Enter")
    expect(page.locator("#moment")).to_be_focused()
    page.locator("#moment-before").press("Enter")
    assert command(page).endswith(" --from 59.600 --to 59.800")
    page.keyboard.press("Escape")
    expect(page.locator("#moment")).to_be_hidden()
    expect(slider).to_be_focused()


def test_dragging_and_double_clicking_zoom_and_open_nothing(opened: Opened) -> None:
    page = opened()
    page.evaluate(
        """() => { window.titles = []; const title = document.getElementById('moment-title');
        new MutationObserver(() => titles.push(title.textContent)).observe(title, { childList: true }); }"""
    )
    x, y = place(page, "throughput", 20.0)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 120, y, steps=4)
    page.mouse.up()
    page.wait_for_function("Plots.of('latency').range()[1] < 50")
    double_click(page, x, y)
    page.wait_for_function("Plots.of('latency').range()[1] > 59")
    page.mouse.click(*place(page, "latency", 50.1))  # comes after whatever the others would have opened
    expect(page.locator("#moment")).to_be_visible()
    titles = page.evaluate("titles")
    assert len(titles) == 1
    assert re.match(r"Packets at (49|50)\.", titles[0])


def test_on_a_phone_a_tap_opens_a_moment_that_fits_the_screen(opened: Opened) -> None:
    page = opened(viewport=PHONE, has_touch=True, is_mobile=True)
    page.touchscreen.tap(*place(page, "throughput", 19.1))
    expect(page.locator("#moment-command")).to_be_visible()
    assert no_sideways_scroll(page)


def test_without_captures_plots_only_zoom_and_read_values(opened: Opened) -> None:
    page = opened("uncaptured")
    expect(page.locator("#what-happened")).to_contain_text("No packets were captured")
    plot(page, "throughput").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#plot-throughput .read-out")).to_contain_text("events/s")
    page.keyboard.press("Enter")
    assert page.locator("#moment").count() == 0


def test_the_pictures_around_faults_follow_the_pages_theme(opened: Opened) -> None:
    page = opened(color_scheme="dark")
    picture = page.locator("#recovery .diagram img").first
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("one => one.complete && one.naturalWidth > 300")
    dark = picture.screenshot()
    page.locator("#theme").click()
    assert picture.screenshot() != dark
