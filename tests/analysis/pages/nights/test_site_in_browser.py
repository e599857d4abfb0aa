"""The site in a real browser: in dark mode, on a phone, and from local files only."""

import pytest
from playwright.sync_api import expect

from tests.analysis.pages.nights.conftest import Visits
from tests.analysis.pages.report.browsing import PHONE, has_lines, no_sideways_scroll

pytestmark = pytest.mark.browser


def test_all_pages_fit_a_phone_and_show_the_verdict(visit: Visits) -> None:
    for name in ("experiments/simulated~link-failure-00.html", "index.html"):
        page = visit(name, viewport=PHONE, color_scheme="dark")
        assert no_sideways_scroll(page), name
    expect(page.locator("#verdict")).to_be_in_viewport()
    expect(page.locator("#verdict")).to_contain_text("1\u00a0number")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 20, 24)"
    page.locator("#theme").click()  # from "as the system has it" to light
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(247, 247, 245)"


def test_links_lead_from_the_verdict_to_the_comparison(visit: Visits) -> None:
    page = visit("index.html")
    page.locator("#worse").get_by_text("side by side").first.click()
    expect(page.locator("h1")).to_contain_text("2 runs compared")


def test_trends_show_dots_levels_and_the_change(visit: Visits) -> None:
    page = visit("experiments/simulated~throughput-01.html")
    chart = page.locator("#trends .plot").first
    chart.scroll_into_view_if_needed()
    expect(chart).to_have_attribute("data-drawn", "true")
    shown = "one => Plots.of(one.id.slice(5)).shown().map((series) => series.form)"
    assert sorted(chart.evaluate(shown)) == ["band"] * 4 + ["dots"] + ["line"] * 2  # before and since
    has_lines(page, str(chart.get_attribute("id"))[5:], 2)
    expect(chart.locator(".mark.bad")).to_have_count(1)
    chart.hover()
    expect(chart.locator(".read-out")).to_contain_text("2026")
