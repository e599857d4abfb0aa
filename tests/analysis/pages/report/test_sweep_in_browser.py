"""A sweep's page in a real browser: figures on screens of any width, and no requests."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import expect

from analysis.pages.report.sweep_page import write_sweep_report
from tests.analysis.pages.report.browsing import (
    PHONE,
    Opened,
    has_lines,
    inked,
    no_sideways_scroll,
    plot,
    ticks,
)
from tests.analysis.pages.report.synthetic_sweep import SWEEPS
from topologies.drawing.palette import colour_of

pytestmark = pytest.mark.browser
PAPER, BAND = "#d6d7da", "#c7e0ee"  # over a panel


@pytest.fixture(scope="module")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """From a sweep's name to its page, written once."""
    parent = tmp_path_factory.mktemp("sweeps")
    return cache(lambda name: write_sweep_report(SWEEPS[name](parent / name)))


def test_every_figure_is_drawn_with_its_lines_bands_and_references(opened: Opened) -> None:
    page = opened("throughput")
    drawn = plot(page, "figure-4a")
    has_lines(page, "figure-4a", 3)
    names = drawn.locator(".line-name").all_text_contents()
    assert set(names) == {"1 proxy", "2 proxies", "3 proxies"}
    expect(drawn.locator(".reference-name")).to_contain_text("paper, 3 proxies")
    assert inked(page, "figure-4a", PAPER) > 500  # from side to side
    for name in names[1:]:
        page.locator("#figure-figure-4a .chip", has_text=name).click()
    has_lines(page, "figure-4a", 1)
    assert inked(page, "figure-4a", BAND) > 500


def test_a_field_without_numbers_is_drawn_as_points_with_bars_and_names(opened: Opened) -> None:
    page = opened("zoo")
    drawn = plot(page, "convergence")
    has_lines(page, "convergence", 0)
    assert min(inked(page, "convergence", colour_of(number)) for number in range(2)) > 200
    assert ticks(page, "convergence", axis=0) == ["ring-3", "star-4"]
    drawn.focus()
    page.keyboard.press("Home")
    expect(drawn.locator(".read-out")).to_have_text(re.compile(r"^ring-3total 1\ss \(0\.5 to 2\)$"))


def test_logarithmic_figures_have_the_line_without_collection(opened: Opened) -> None:
    page = opened("collection")
    expect(plot(page, "figure-10b").locator(".reference-name")).to_have_text("without collection")
    has_lines(page, "figure-10b", 3)
    assert ticks(page, "figure-10b")[-3:] == ["10 000", "100 000", "1 M"]


@pytest.mark.parametrize("name", ["zoo", "latency-load"])
def test_on_a_phone_nothing_is_wider_than_the_screen(opened: Opened, name: str) -> None:
    assert no_sideways_scroll(opened(name, viewport=PHONE, color_scheme="dark"))
