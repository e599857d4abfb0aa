"""A sweep's page in a real browser: it draws its figures, on screens of any width, and asks for nothing."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import expect

from analysis.report.sweep_page import write_sweep_report
from tests.analysis.report.browsing import PHONE, Opened, no_sideways_scroll
from tests.analysis.report.synthetic_sweep import SWEEPS

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """From a sweep's name to its page, written once."""
    parent = tmp_path_factory.mktemp("sweeps")
    return cache(lambda name: write_sweep_report(SWEEPS[name](parent / name)))


def test_every_figure_is_drawn_with_its_lines_bands_and_references(opened: Opened) -> None:
    page = opened("throughput")
    plot = page.locator("#plot-figure-4a")
    expect(plot.locator(".scatterlayer .trace path.js-line")).to_have_count(6)  # 3 lines and their bands
    assert plot.locator(".shapelayer path").count() == 1
    texts = plot.locator(".annotation-text").all_text_contents()
    assert {"1 proxy", "2 proxies", "3 proxies"} <= set(texts)
    assert any(text.startswith("paper, 3 proxies") for text in texts)


def test_a_field_without_numbers_is_drawn_as_points_with_bars_and_names(opened: Opened) -> None:
    plot = opened("zoo").locator("#plot-convergence")
    expect(plot.locator(".scatterlayer .points path")).to_have_count(4)  # 2 lines of 2 topologies
    assert plot.locator(".errorbar").count() == 4
    assert plot.locator(".xtick text").all_text_contents() == ["ring-3", "star-4"]


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
