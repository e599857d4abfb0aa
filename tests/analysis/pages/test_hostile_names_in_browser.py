"""No name in a history, a sweep or a live run makes a page run scripts or send requests."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from analysis.history import ExpectationResult, History
from analysis.live.board import LiveBoard
from analysis.live.server import PageServer
from analysis.live.view import live_charts
from analysis.pages.nights import write_site
from analysis.pages.report.sweep_page import write_sweep_report
from tests.analysis.history.records import make_record
from tests.analysis.pages.report.browsing import LOADED_MS, WIDE, Complaints
from tests.analysis.pages.report.synthetic_sweep import Made, plan, summary, write_sweep

pytestmark = pytest.mark.browser

NAMES = (
    '</script><script>boom()</script><img src="https://elsewhere.example/a" onerror="boom()">',
    '"><svg onload="boom()"><a href="javascript:boom()">x</a>',
    "' onmouseover='boom()' x='",
    '{{ 7*7 }}</style><link rel="stylesheet" href="https://elsewhere.example/b">&lt;b&gt;',
)
HOSTILE = "".join(NAMES)


@pytest.fixture
def visit(browser: Browser) -> Iterator["Visit"]:
    visit = Visit(browser)
    yield visit
    for context in browser.contexts:
        context.close()


class Visit:
    """Opens a page with all details unfolded; it must make no requests."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser

    def __call__(self, address: str, root: str) -> Page:
        made = self.browser.new_context(viewport=WIDE).new_page()
        made.set_default_timeout(LOADED_MS)
        self.complaints, self.root = Complaints(), root
        self.complaints.watch(made, address)
        made.goto(address)
        return made

    def check(self, page: Page) -> None:
        """Point at all elements, and check for forbidden actions."""
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.evaluate(
            "document.querySelectorAll('*').forEach((one) => one.dispatchEvent(new MouseEvent('mouseover')))"
        )
        page.wait_for_function("document.readyState === 'complete'")
        assert (
            page.locator("script:has-text('boom')").evaluate_all(
                "all => all.filter((one) => one.textContent.startsWith('boom')).length"
            )
            == 0
        )
        assert page.locator("a[href^=javascript], [onload], [onerror], [onmouseover]").count() == 0
        assert page.locator("img[src^=http], link[href^=http]").count() == 0
        allowed = (f"request: {self.root}", "request: data:")
        assert [one for one in self.complaints.found if not one.startswith(allowed)] == []


def test_a_sweeps_page(visit: Visit, tmp_path: Path) -> None:
    def make(values: Mapping[str, Any], seed: int) -> Made:
        figures = {"last_change_s": 6.0, "full_s": 0.5 * seed, "beyond_way_s": 0.4 * seed}
        said = summary(2e3, verdict="failed", lost=seed) | {"convergence": figures, "problems": [HOSTILE]}
        expected = [{"text": HOSTILE, "value": HOSTILE, "held": False, "unproven": [HOSTILE]}]
        shown = plan(3, 1)
        regions = tuple(replace(region, name=f"{region.name}{HOSTILE}"[:200]) for region in shown.regions)
        hosts = tuple(replace(host, region=regions[int(host.region[1:])].name) for host in shown.hosts)
        return (
            replace(shown, regions=regions, hosts=hosts),
            said | {"expectations": expected, "fidelity": {"valid": False, "reasons": [HOSTILE]}},
            None,
        )

    swept = {"topology": list(NAMES), f"parameters.{NAMES[1]}": [HOSTILE, 2]}
    sweep = write_sweep(tmp_path / "sweep", HOSTILE[:150], swept, make, repeat=2)
    file = write_sweep_report(sweep)
    page = visit(file.as_uri(), file.as_uri())
    expect(page.locator("h1")).to_contain_text(NAMES[0][:60])
    visit.check(page)


def test_the_pages_of_nights(visit: Visit, tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    hostile = {
        **dict.fromkeys(
            ("suite", "entry", "experiment", "commit", "cutset", "python", "kernel"), HOSTILE[:80]
        ),
        **dict.fromkeys(("links", "place", "outcome"), HOSTILE),
        "settings": {HOSTILE: HOSTILE},
        "machine": {"hostname": HOSTILE, HOSTILE: 1},
    }
    for number in range(12):
        night = f"2026-03-{number + 1:02}"
        bad = number > 9
        history.append(
            make_record(
                f"202603{number + 1:02}T020000Z-{NAMES[2]}-{number:06}",
                night,
                **hostile,
                verdict="failed" if bad else "passed",
                reasons=(HOSTILE,),
                problems=(HOSTILE,),
                expectations=(ExpectationResult(HOSTILE, 1.0, not bad),),
            )
        )
    site = tmp_path / "site"
    write_site(history, site)
    pages = sorted(site.rglob("*.html"))
    assert len(pages) == 2
    for file in pages:
        page = visit(file.as_uri(), site.as_uri())
        expect(page.locator("body")).to_contain_text("boom()")
        visit.check(page)


def test_the_live_page(visit: Visit) -> None:
    board = LiveBoard({
        "title": HOSTILE, "description": HOSTILE, "run": HOSTILE, "path": HOSTILE, "duration_s": 60.0,
        "charts": live_charts(NAMES, 60.0),
    })  # fmt: skip
    server = PageServer(board)
    server.start()
    try:
        page = visit(server.url, server.url)
        rows = [[number / 5, 80_000.0, 60.0, 70.0] for number in range(150)]
        board.update(
            {
                "phase": HOSTILE, "running": True, "elapsed_s": 31.2, "events_per_s": 79_812.4, "p95_ms": 9.0,
                "bands": [{"label": HOSTILE, "start_s": 19.0, "end_s": None}], "failed": HOSTILE,
            },
            throughput={name: [row[:2] for row in rows] for name in NAMES},
            latency=dict.fromkeys(NAMES, rows),
            lines=[HOSTILE],
        )  # fmt: skip
        expect(page.locator("#lines")).to_contain_text("boom()")
        expect(page.locator("#title")).to_have_text(HOSTILE)
        visit.check(page)
        board.update({"ended": True, "verdict": HOSTILE})
        expect(page.locator("#network")).to_have_text("ended")
        visit.check(page)
    finally:
        server.stop()
