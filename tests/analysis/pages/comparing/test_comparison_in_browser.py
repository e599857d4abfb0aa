"""A comparison's page in a real browser: no requests, fits a phone, and values can be read."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import expect

from analysis.pages.comparing.page import write_page
from analysis.pages.comparing.sides import read_sides
from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.browsing import PHONE, Opened, has_lines, no_sideways_scroll, plot

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_of(
    run_of: Callable[[str], RunDirectory], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Return a function from the second run's name to its comparison with the run that passed."""
    folder = tmp_path_factory.mktemp("comparisons")

    def page(name: str) -> Path:
        file = folder / f"{name}.html"
        write_page(read_sides([run_of("passed"), run_of(name)]), file)
        return file

    return cache(page)


@pytest.mark.parametrize("name", ["crashed", "hostile"])
def test_the_dark_comparison_page_fits_a_phone(opened: Opened, name: str) -> None:
    page = opened(name, viewport=PHONE, color_scheme="dark")
    assert no_sideways_scroll(page)
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    assert no_sideways_scroll(page)


def test_differences_are_on_the_first_screen_and_both_runs_drawn_with_their_values(opened: Opened) -> None:
    page = opened("later")
    first = page.locator("section.first")
    expect(first).to_contain_text("experiment.workload.rate")
    expect(first).to_contain_text("cut: events flow again")
    chart = plot(page, "throughput")
    has_lines(page, "throughput", 2)
    chart.hover(position={"x": 200, "y": 100})
    expect(chart.locator(".read-out")).to_contain_text("events/s")
    assert chart.locator(".read-out > div").count() == 2
    page.mouse.move(0, 0)
    expect(chart.locator(".read-out")).to_have_count(0)


def test_an_invalid_run_is_marked_beside_every_conclusion(opened: Opened) -> None:
    page = opened("invalid")
    expect(page.locator(".qualifier")).to_have_text("B invalid")
    expect(page.locator(".sides .card").nth(1)).to_contain_text("the kernel dropped 17 packets")
