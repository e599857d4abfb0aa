"""The live page in a real browser: with hand-made updates, and of a real run."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from analysis.capture.pcap.files.index import build_index
from analysis.live.board import LiveBoard
from analysis.live.server import PageServer
from analysis.live.view import live_charts
from analysis.pipeline import analyze
from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.browsing import (
    LOADED_MS,
    PHONE,
    WIDE,
    browser,  # noqa: F401 (a fixture)
    inked,
    no_sideways_scroll,
)
from tests.testbed.leftovers import wait_until
from tests.testbed.runner.live import CUTSET, write_experiment
from topologies.drawing.palette import colour_of

pytestmark = pytest.mark.browser

WATCHED_MS = 300_000  # the process that reads a run that goes on gives way to all others
REGIONS = ("r0", "r1")
NUMBER, SECONDS = re.compile(r"[1-9]"), re.compile(r"^\d+\.\d$")


@pytest.fixture
def board() -> LiveBoard:
    made = LiveBoard({
        "title": "link-failure", "description": "A link fails.", "run": "a-run", "path": "/runs/a-run",
        "duration_s": 60.0, "charts": live_charts(REGIONS, 60.0),
    })  # fmt: skip
    made.update({"phase": "building", "bands": []})
    return made


@pytest.fixture
def server(board: LiveBoard) -> Iterator[PageServer]:
    made = PageServer(board)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def page(browser: Browser, server: PageServer) -> Iterator[Page]:  # noqa: F811
    """Open the page; it must not log errors or contact other hosts."""
    context = browser.new_context(viewport=WIDE)
    made = context.new_page()
    made.set_default_timeout(LOADED_MS)
    complaints: list[str] = []
    made.on("console", lambda message: complaints.append(message.text))
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.on(
        "request", lambda r: None if r.url.startswith((server.url, "data:")) else complaints.append(r.url)
    )
    made.goto(server.url)
    yield made
    context.close()
    assert complaints == []


def tell_a_minute(board: LiveBoard) -> None:
    starts = [number / 5 for number in range(150)]
    board.update(
        {
            "phase": "running", "running": True, "elapsed_s": 31.2, "events_per_s": 79_812.4, "p95_ms": 62.25,
            "behind_s": 1.9, "shown_s": 30.0,
            "bands": [{"label": "cut r0–r1", "start_s": 19.0, "end_s": None}],  # noqa: RUF001
        },
        throughput={name: [[start, 80_000.0] for start in starts] for name in ("r0", "r1")},
        latency={name: [[start, 40.0, 60.0, 4000.0] for start in starts] for name in ("r0", "r1")},
        lines=["problem: <b>the disk</b> is full"],
    )  # fmt: skip


def shown(page: Page, name: str) -> str:
    return page.locator(f"#{name}").inner_text()


def test_the_page_shows_the_reported_phase_of_the_run(page: Page, board: LiveBoard) -> None:
    expect(page.locator("#phase")).to_have_text("building")
    tell_a_minute(board)
    expect(page.locator("#rate")).to_have_text("79\u202f812")
    assert shown(page, "title") == "link-failure"
    assert (shown(page, "phase"), shown(page, "elapsed")) == ("running", "31 of 60 s")
    assert (shown(page, "rate"), shown(page, "p95"), shown(page, "behind")) == ("79\u202f812", "62.3", "1.9")
    assert shown(page, "network") == "cut r0–r1"  # noqa: RUF001
    assert shown(page, "lines") == "problem: <b>the disk</b> is full"


def test_lines_have_their_regions_colours_and_can_be_switched_off(page: Page, board: LiveBoard) -> None:
    tell_a_minute(board)
    expect(page.locator("#rate")).to_have_text("79\u202f812")
    page.get_by_role("button", name="r1").click()
    expect(page.locator("#regions [aria-pressed=false]")).to_have_count(1)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    for name in ("throughput", "latency"):
        assert inked(page, name, colour_of(0)) > 100
        assert inked(page, name, colour_of(1)) == 0


def test_a_click_shows_another_percentile(page: Page, board: LiveBoard) -> None:
    tell_a_minute(board)
    page.get_by_role("button", name="p99").click()
    expect(page.locator("#latency-unit")).to_have_text("ms, p99")


def test_the_page_fits_a_phone(page: Page, board: LiveBoard) -> None:
    page.set_viewport_size(PHONE)
    tell_a_minute(board)
    expect(page.locator("#rate")).to_have_text("79\u202f812")
    assert no_sideways_scroll(page)


def test_open_pages_load_the_report(page: Page, board: LiveBoard, server: PageServer, tmp_path: Path) -> None:
    server.report = tmp_path / "report.html"
    server.report.write_text(
        "<!doctype html><title>Passed: link-failure</title><link rel=icon href='data:,'>"
    )
    page.wait_for_selector("#regions .chip")
    board.update({"ended": True})
    board.update({"report": str(server.report), "verdict": "passed"})
    page.wait_for_url(f"{server.url}report")
    assert page.title() == "Passed: link-failure"
    server.wait_until_left(LOADED_MS / 1000)
    assert board.pages == 0


def test_the_page_keeps_its_content_after_the_commands_end(
    browser: Browser,  # noqa: F811
    board: LiveBoard,
    server: PageServer,
) -> None:
    page = browser.new_page()
    page.set_default_timeout(LOADED_MS)
    page.goto(server.url)
    tell_a_minute(board)
    expect(page.locator("#rate")).to_have_text("79\u202f812")
    server.stop()
    page.wait_for_function(
        "document.getElementById('message').textContent.startsWith('The command has ended')"
    )
    assert "/runs/a-run" in shown(page, "message")
    assert shown(page, "rate") == "79\u202f812"
    assert inked(page, "throughput", colour_of(1)) > 100
    page.close()


class WatchedRun:
    """`cutset run --live` of a small network, as long as a test needs it, and analysed when interrupted."""

    def __init__(self, folder: Path) -> None:
        options = ["--live", "--out", str(folder / "runs"), "--set", "duration=900s", "--set", "drain=20s"]
        self._said: list[str] = []
        self.process = subprocess.Popen(
            [*CUTSET, "run", str(write_experiment(folder)), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "WatchedRun":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        _, rest = self.process.communicate()
        sys.stderr.write("".join([*self._said, rest]))  # what pytest shows of a test that failed

    def find(self, pattern: str) -> str:
        """Return the first match of the pattern's group in the next lines on standard error."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._said.append(line)
            if found := re.search(pattern, line):
                return found[1]
        raise AssertionError("".join(self._said))


@pytest.mark.network
def test_a_watched_run_ends_with_its_report_and_the_usual_result(
    browser: Browser,  # noqa: F811
    tmp_path: Path,
) -> None:
    with WatchedRun(tmp_path) as watched:
        run = RunDirectory(Path(watched.find(r"^run (\S+)")))
        url = watched.find(r"^live at (\S+)")
        page = browser.new_page()
        page.set_default_timeout(LOADED_MS)
        page.goto(url)
        expect(page.locator("#rate")).to_have_text(NUMBER, timeout=WATCHED_MS)
        expect(page.locator("#p95")).to_have_text(NUMBER)
        expect(page.locator("#behind")).to_have_text(SECONDS)
        wait_until(lambda: inked(page, "throughput", colour_of(1)) > 0, "a line of the second region")
        watched.find(r"(p95 .* s behind)")
        watched.process.send_signal(signal.SIGINT)
        page.wait_for_url(f"{url}report")
        assert "tiny" in page.title()
        page.close()
        assert watched.process.wait() == 130
    record, summary = read_json(run.run_json), run.read_summary()
    assert summary["events"]["delivered"] > 0
    assert_whole_captures(run, record)
    assert analyze(run, progress=lambda _: None) == summary


def assert_whole_captures(run: RunDirectory, record: dict[str, Any]) -> None:
    """Check that each capture is one file with the packets that tcpdump counted, without drops."""
    captures = {Path(capture["file"]).name: capture for capture in record["captures"]}
    assert {path.name for path in run.captures.iterdir() if path.suffix != ".index"} == set(captures)
    for name, capture in captures.items():
        assert build_index(run.capture(name)).packets == capture["packets"] > 0
        assert capture["kernel_drops"] == 0
    assert json.loads(run.summary_json.read_text())["fidelity"]["capture_drops"] == 0
