"""Pages in a real browser: headless Chromium of the machine, driven by Playwright.

Every test that opens a page with `opened` fails on a console error, an error of the page, or a request for
anything but the page itself.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

Opened = Callable[..., Page]
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
LOADED_MS = 60_000  # the suite shares its processors
LATER = "2100-01-01T00:00:00Z"
expect.set_options(timeout=LOADED_MS)


@dataclass
class Complaints:
    """The forbidden actions of a page."""

    found: list[str] = field(default_factory=list)

    def watch(self, page: Page, address: str) -> None:
        """Note what it does from now on."""
        page.on("console", lambda message: self.found.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.found.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.found.append(f"dialog: {dialog.message}"))
        page.on("request", lambda r: self.found.append(f"request: {r.url}") if r.url != address else None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield the machine's Chromium, headless. While it is there, an event loop runs in this thread."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    assert path, "the tests of the report need Debian's package chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, args=list(ARGUMENTS), timeout=2 * LOADED_MS
        )
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Browser, page_of: Callable[[str], Path]) -> Iterator[Opened]:
    """Yield a function that opens a page; options are those of a browser context.

    page_of: a fixture of the module that returns the page's file by name.
    """
    complaints, contexts = Complaints(), []

    def page(name: str = "passed", **options: Any) -> Page:
        context = browser.new_context(**{"viewport": WIDE, **options})
        contexts.append(context)
        made = context.new_page()
        made.set_default_timeout(LOADED_MS)
        address = page_of(name).resolve().as_uri()
        complaints.watch(made, address)
        made.goto(address)
        if made.locator(".plot").count():
            made.wait_for_selector("html[data-plots=ready]", state="attached")
        return made

    yield page
    for context in contexts:
        context.close()
    assert complaints.found == []


def plot(page: Page, key: str) -> Locator:
    """Return a plot, scrolled to and drawn."""
    found = page.locator(f"#plot-{key}")
    found.scroll_into_view_if_needed()
    page.wait_for_selector(f"#plot-{key}[data-drawn]")
    return found


def has_lines(page: Page, key: str, count: int) -> None:
    """Wait until a plot has drawn this many lines: uPlot keeps the path of each visible one."""
    page.wait_for_function(
        "([key, count]) => Plots.of(key).uplot.series.filter((one) => one._paths?.stroke).length === count",
        arg=[key, count],
    )


def ticks(page: Page, key: str, axis: int = 1) -> list[str]:
    """Return the labels of the vertical axis (1) or the horizontal one (0), with ordinary spaces."""
    written = page.evaluate("([key, axis]) => Plots.of(key).uplot.axes[axis]._values", [key, axis])
    return [text.replace("\u202f", " ").replace("\u00a0", " ") for text in written]


def inked(page: Page, key: str, colour: str) -> int:
    """Return how many pixels of a plot on its panel have this colour (#RRGGBB)."""
    return int(
        page.evaluate(
            """([key, colour]) => {
              const canvas = document.querySelector(`#plot-${key} canvas`);
              const copy = document.createElement("canvas");
              [copy.width, copy.height] = [canvas.width, canvas.height];
              const pen = copy.getContext("2d", { willReadFrequently: true });
              pen.fillStyle = Theme.colour("var(--surface)");
              pen.fillRect(0, 0, copy.width, copy.height);
              pen.drawImage(canvas, 0, 0);
              const wanted = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
              const dots = pen.getImageData(0, 0, copy.width, copy.height).data;
              let count = 0;
              for (let at = 0; at < dots.length; at += 4)
                if (wanted.every((part, i) => Math.abs(dots[at + i] - part) <= 1)) count += 1;
              return count;
            }""",
            [key, colour],
        )
    )


def shown_range(page: Page, key: str) -> list[float]:
    """Return the ends of a plot's horizontal axis."""
    return [round(x, 1) for x in page.evaluate(f"Plots.of('{key}').range()")]


def double_click(page: Page, x: float, y: float) -> None:
    """Click twice while the page's clock is paused, so that a slow machine makes no difference."""
    page.clock.install()
    page.clock.pause_at(LATER)
    page.mouse.dblclick(x, y)
    page.clock.resume()


def no_sideways_scroll(page: Page) -> bool:
    """Whether the page is no wider than the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))
