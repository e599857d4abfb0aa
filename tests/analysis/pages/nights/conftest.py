"""A short history whose last night went wrong in known ways, and the site over it."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from analysis.history import History
from analysis.history.history_schemas import HistoryFilter
from analysis.pages.nights import write_site
from experiments.records.rundir import RunDirectory
from tests.analysis.history.year import Planted, make_year, night_of
from tests.analysis.pages.report.browsing import LOADED_MS, WIDE, Complaints
from tests.analysis.pages.report.synthetic_run import write_run

NIGHTS = 40
TONIGHT = night_of(NIGHTS - 1)
PLANTED = (
    Planted("link-failure-00", "events.lost", NIGHTS - 1, 17),  # tonight
    Planted("throughput-01", "throughput.events_per_s", NIGHTS - 12, -0.10),  # still
    Planted("latency-load-03", "latency.p50_ms", NIGHTS - 20, -0.20),  # better, since a while
)


@dataclass(frozen=True)
class Written:
    """A site, and the history that it was written from."""

    history: History
    folder: Path

    def page(self, *names: str) -> str:
        """Return the text of one of its pages."""
        return self.folder.joinpath(*names).read_text()

    def runs(self, entry: str, night: str = TONIGHT) -> list[str]:
        """Names of the runs of an entry in a night."""
        return self.history.runs(HistoryFilter(entry=entry, since=night, until=night))["run"].to_pylist()


def put_run(history: History, name: str) -> RunDirectory:
    """Create the directory of a run with an analysis and a placeholder report."""
    (row,) = history.runs(HistoryFilter(run=name)).to_pylist()
    run = write_run(Path(row["path"]).parent / "made")
    run.report_html.write_text("a report")
    run.path.rename(row["path"])
    return RunDirectory(Path(row["path"]))


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Write the site once. The first run of tonight and the last of yesterday of link-failure-00 exist."""
    parent = tmp_path_factory.mktemp("nights")
    history = make_year(
        parent / "history", nights=NIGHTS, experiments=4, planted=PLANTED, invalid=0.0, crashed=0.0
    )
    site = Written(history, parent / "history" / "site")
    put_run(history, site.runs("link-failure-00")[0])
    put_run(history, site.runs("link-failure-00", night_of(NIGHTS - 2))[-1])
    assert write_site(history, site.folder) == site.folder / "index.html"
    return site


@pytest.fixture
def copied(written: Written, tmp_path: Path) -> Written:
    """Copy the history and its site, for a test to change."""
    shutil.copytree(written.history.folder, tmp_path / "history")
    return Written(History(tmp_path / "history"), tmp_path / "history" / "site")


class Visits:
    """Opens pages of a site; fails on errors, and on requests for anything outside its folder."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser, self.root, self.complaints = browser, folder.resolve().as_uri(), Complaints()

    def __call__(self, page: str, **options: object) -> Page:
        context = self.browser.new_context(**{"viewport": WIDE, **options})  # type: ignore[arg-type]
        made = context.new_page()
        made.set_default_timeout(LOADED_MS)
        self.complaints.watch(made, "")
        made.goto(f"{self.root}/{page}")
        return made

    def found(self) -> list[str]:
        """Return the forbidden actions of pages."""
        return [one for one in self.complaints.found if not one.startswith(f"request: {self.root}/")]


@pytest.fixture
def visit(browser: Browser, written: Written) -> Iterator[Visits]:
    """From a page's name to the page, opened."""
    visits = Visits(browser, written.folder)
    yield visits
    for context in browser.contexts:
        context.close()
    assert visits.found() == []
