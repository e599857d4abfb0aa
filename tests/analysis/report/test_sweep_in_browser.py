"""A sweep's page in a real browser: it draws its figures, on screens of any width, and asks for nothing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from analysis.sweeps import report
from tests.analysis.report.synthetic_sweep import SWEEPS
from tests.analysis.report.test_page_in_browser import (
    LOADED_MS,
    PHONE,
    WIDE,
    Complaints,
    browser,
    no_sideways_scroll,
)

__all__ = ["browser"]  # the fixture

pytestmark = pytest.mark.browser

Opened = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, tmp_path: Any) -> Iterator[Opened]:
    """A function that opens the page of a sweep; options are those of a browser context."""
    complaints, contexts = Complaints(), []

    def page(name: str, **options: Any) -> Page:
        context = browser.new_context(**{"viewport": WIDE, **options})
        contexts.append(context)
        made = context.new_page()
        address = report(SWEEPS[name](tmp_path / name)).resolve().as_uri()
        complaints.watch(made, address)
        made.goto(address)
        if made.locator(".plot").count():
            made.wait_for_selector("html[data-plots=ready]", state="attached", timeout=LOADED_MS)
        return made

    yield page
    for context in contexts:
        context.close()
    assert complaints.found == []


def test_every_figure_is_drawn_with_its_lines_bands_and_references(opened: Opened) -> None:
    page = opened("throughput")
    plot = page.locator("#plot-figure-4a")
    expect(plot.locator(".scatterlayer .trace path.js-line")).to_have_count(6)  # 3 lines and their bands
    assert plot.locator(".shapelayer path").count() == 1
    texts = plot.locator(".annotation-text").all_text_contents()
    assert {"1 proxy", "2 proxies", "3 proxies"} <= set(texts)
    assert any(text.startswith("paper, 3 proxies") for text in texts)


def test_logarithmic_figures_have_the_line_without_collection(opened: Opened) -> None:
    page = opened("collection")
    expect(page.locator("#plot-figure-10b .shapelayer path")).to_have_count(1)
    assert page.locator("#plot-figure-10b .scatterlayer .trace").count() == 3


@pytest.mark.parametrize("name", list(SWEEPS))
def test_on_a_phone_nothing_is_wider_than_the_screen(opened: Opened, name: str) -> None:
    assert no_sideways_scroll(opened(name, viewport=PHONE, color_scheme="dark"))


def test_the_runs_can_be_sorted(opened: Opened) -> None:
    page = opened("nemesis")
    page.locator("#table-runs th button", has_text="wrong").click()
    page.locator("#table-runs th button", has_text="wrong").click()
    assert "120" in page.locator("#table-runs tbody tr").first.text_content()
