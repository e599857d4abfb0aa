"""The site of a history: the morning page's content, its links, and the experiments' pages."""

import re
from datetime import date
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from analysis.errors import AnalysisError
from analysis.history import History, Metric
from analysis.pages.nights import write_site
from analysis.pages.nights.overview import shortened_reasons
from tests.analysis.history.records import make_record
from tests.analysis.history.year import make_year, night_of
from tests.analysis.pages.nights.conftest import NIGHTS, Written, put_run


def section(page: str, name: str) -> str:
    """Return a section of a page by its id, or ""."""
    found = re.search(rf'<section id="{name}">.*?</section>', page, re.DOTALL)
    return found[0] if found else ""


@pytest.mark.slow
def test_tonights_regressions_come_first_with_their_commits(written: Written) -> None:
    page = written.page("index.html")
    verdict = re.search(r'id="verdict">(.*?)</p>', page, re.DOTALL)
    assert verdict
    assert "1\u00a0number" in verdict[1]
    worse = section(page, "worse")
    assert "link-failure-00" in worse
    assert "0\u00a0events → 17\u00a0events" in worse
    assert re.search(r"[0-9a-f]{10}\.\.[0-9a-f]{10}|No commit is the cause", worse)


def test_older_regressions_and_improvements_are_listed_separately(written: Written) -> None:
    page = written.page("index.html")
    assert "throughput-01" in section(page, "still")
    assert "throughput-01" not in section(page, "worse")
    assert "latency-load-03" in section(page, "earlier")


def test_runs_with_the_same_failure_are_merged(written: Written) -> None:
    failed = section(written.page("index.html"), "failed")
    assert failed.count("<li>") == 1
    assert f"link-failure-00, {len(written.runs('link-failure-00'))} times</a>: events.lost == 0" in failed


def test_names_too_long_for_files_have_their_own_pages(tmp_path: Path) -> None:
    history, names = History(tmp_path / "history"), ["<b>" * 200 + end for end in "xy"]
    for number, name in enumerate(names):
        history.append(make_record(f"run-{number}", suite=name, entry=name))
    write_site(history, tmp_path / "site")
    pages = [path.read_text() for path in (tmp_path / "site" / "experiments").iterdir()]
    assert len(pages) == len(names)
    assert all(sum(f"b&gt;{end}" in page for page in pages) == 1 for end in "xy")


def test_a_page_that_is_a_link_is_replaced(tmp_path: Path) -> None:
    history, site, mine = History(tmp_path / "history"), tmp_path / "site", tmp_path / "thesis.tex"
    mine.write_text("all of it")
    history.append(make_record("run-a"))
    write_site(history, site)
    for page in site.rglob("*.html"):
        page.unlink()
        page.symlink_to(mine)
    write_site(history, site)
    assert mine.read_text() == "all of it"
    assert not [page for page in site.rglob("*.html") if page.is_symlink()]


def test_a_site_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    history.append(make_record("only"))
    (tmp_path / "site" / "index.html").mkdir(parents=True)
    with pytest.raises(AnalysisError, match=r"index\.html.*: the site cannot be written: Is a directory"):
        write_site(history, tmp_path / "site")


@pytest.mark.slow
def test_a_finding_lists_only_settings_that_differ(tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    for number in range(20):
        rate, lost = ("1000/s", 500.0) if number == 19 else ("2000/s", 0.0)
        settings = {"duration": "30s", "workload.rate": rate}
        metrics = (Metric("events.lost", lost, "events", "lower"),)
        history.append(make_record(f"run-{number}", night_of(number), settings=settings, metrics=metrics))
    write_site(history, tmp_path / "site")
    worse = unescape(section(Written(history, tmp_path / "site").page("index.html"), "worse"))
    assert "Also changed: workload.rate 2000/s -> 1000/s." in worse
    assert "duration" not in worse


def test_every_experiment_has_its_trends_and_runs_with_why_they_failed(written: Written) -> None:
    page = written.page("experiments", "simulated~link-failure-00.html")
    for title in ("Throughput", "Latency p95", "cut: events flow again", "restore: caught up"):
        assert f"<h3>{title}</h3>" in page
    for run in written.runs("link-failure-00"):
        assert re.search(rf"<td>(<a [^>]*>)?{run}(</a>)?</td><td>.*failed.*<td>events.lost == 0", page)


def test_a_run_is_compared_with_the_last_good_one_if_both_exist(written: Written) -> None:
    first, *others = written.runs("link-failure-00")
    good = written.runs("link-failure-00", night_of(NIGHTS - 2))[-1]
    assert good in written.page("compare", f"{first}.html")
    assert f'href="compare/{first}.html"' in section(written.page("index.html"), "failed")
    assert not any((written.folder / "compare" / f"{other}.html").exists() for other in others)


def test_a_run_leads_to_its_report_as_long_as_that_is_there(tmp_path: Path) -> None:
    history, site = History(tmp_path / "history"), tmp_path / "site"
    history.append(make_record("old", path=str(tmp_path / "runs" / "old"), verdict="failed"))
    made = put_run(history, "old")
    tonight = section(write_site(history, site).read_text(), "tonight")
    assert made.report_html.name in tonight
    made.report_html.unlink()
    tonight = section(write_site(history, site).read_text(), "tonight")
    assert made.report_html.name not in tonight


def test_links_lead_to_existing_pages(written: Written) -> None:
    run = written.runs("link-failure-00")[0]
    pages = [
        "index.html",
        "experiments/simulated~link-failure-00.html",
        f"compare/{run}.html",
    ]
    for name in pages:
        links = re.findall(r'(?:href|src)="([^"#]+)"', written.page(name))
        assert links or name.startswith("compare")
        for link in links:
            target = written.folder / name
            assert (target.parent / unquote(unescape(link))).exists(), (name, link)


@pytest.mark.slow
def test_the_page_of_a_quiet_history_reports_no_regressions(tmp_path: Path) -> None:
    history = make_year(tmp_path / "history", nights=20, experiments=1, invalid=0.0, crashed=0.0)
    page = write_site(history, tmp_path / "site").read_text()
    assert "Nothing</span>" in re.sub(r"<span aria-hidden[^<]*</span> ", "", page)
    assert not section(page, "worse")
    assert not section(page, "failed")


def test_a_night_of_invalid_runs_has_no_conclusions(tmp_path: Path) -> None:
    history = make_year(tmp_path / "history", nights=15, experiments=1, invalid=1.0, crashed=0.0)
    page = write_site(history, tmp_path / "site").read_text()
    assert "Nothing known" in page
    assert "1 of 1\u00a0experiment had no valid run" in page


def test_two_suites_are_side_by_side(tmp_path: Path) -> None:
    make_year(tmp_path / "history", nights=12, experiments=1, suite="quick")
    history = make_year(tmp_path / "history", nights=1, experiments=1, suite="full", first=date(2026, 1, 13))
    page = write_site(history, tmp_path / "site").read_text()
    assert "<h3>quick" in page
    assert "<h3>full" in page


def test_experiments_of_suites_with_like_names_have_pages_of_their_own(tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    history.append(make_record("a", suite="quick", entry="lan-cut"))
    history.append(make_record("b", suite="quick-lan", entry="cut"))
    history.append(make_record("c", suite="quick", entry="lan/cut"))
    history.append(make_record("d", suite="quick", entry="lan~cut"))
    write_site(history, tmp_path / "site")
    pages = list((tmp_path / "site" / "experiments").iterdir())
    assert len(pages) == 4


@pytest.mark.slow
def test_files_that_were_skipped_are_named(copied: Written) -> None:
    torn = next((copied.history.folder / "metrics").rglob("*.parquet"))
    torn.write_bytes(torn.read_bytes()[:100])
    page = write_site(copied.history, copied.folder).read_text()
    assert torn.name in section(page, "problems")


def test_the_first_of_many_reasons_is_shown_and_the_others_counted() -> None:
    assert shortened_reasons("one") == "one"
    assert shortened_reasons("one; two; three") == "one (and 2 more)"
    assert shortened_reasons("one; two", 2) == "one; two"
    assert shortened_reasons("x" * 1000) == "x" * 159 + "…"
