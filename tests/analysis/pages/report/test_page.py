"""The page's text: verdicts beside numbers, escaped names, and pages of incomplete runs."""

import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.pages.report import write_page, write_report
from analysis.pages.report.page import render
from analysis.pages.report.run_reader import read_record
from analysis.schemas import CAPTURES
from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.report_scenario import HOSTILE, SCENARIOS
from tests.run_json import set_run
from topologies.errors import InputError

Reported = Callable[[str], RunDirectory]
ASSETS = Path(__file__).parents[4] / "analysis" / "pages" / "report" / "assets"
CHARTING = ASSETS.parents[1] / "charting" / "assets"
VOID = {"meta", "img", "br", "hr", "input", "link", "line", "circle", "path"}
PICTURE = "data:image/svg+xml;base64,"
QUALIFIER = "from an invalid run"


class Page(HTMLParser):
    """A page as a browser sees it: elements, scripts, and text outside scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.text = ""
        self.sections: dict[str, str] = {}  # text of the sections that have an id
        self._open: list[str] = []
        self._section = self._script = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.elements.append((tag, found))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "section":
            self._section = found.get("id") or "first"
        if tag == "script":
            self._script = found.get("id") or f"script {len(self.scripts)}"

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts[self._script] = self.scripts.get(self._script, "") + data
        elif self._open and self._open[-1] != "style":
            self.text += data
            self.sections[self._section] = self.sections.get(self._section, "") + data

    @property
    def whole(self) -> bool:
        """Whether every opened element is closed."""
        return not self._open


def page(run: RunDirectory) -> Page:
    """Parse the page of a run."""
    return Page(run.report_html.read_text(encoding="utf-8"))


def shown(run: RunDirectory) -> Page:
    """Parse the page of a run without pictures."""
    record = read_record(run)
    return Page(render(record, run))


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.slow
def test_every_kind_of_run_gives_a_complete_page(reported: Reported, name: str) -> None:
    assert page(reported(name)).whole


def test_the_page_makes_no_requests(reported: Reported) -> None:
    html = reported("passed").report_html.read_text(encoding="utf-8")
    found = Page(html)
    policy = next(a["content"] for t, a in found.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    sources, links = ([str(a[key]) for _, a in found.elements if key in a] for key in ("src", "href"))
    assert all(source.startswith(PICTURE) for source in sources)
    assert all(link.startswith(("#", "figures/")) for link in links)  # a link is followed only when asked to
    assert not re.search(r"url\(|@import", html)


def test_names_cannot_become_markup_or_script(reported: Reported) -> None:
    found = page(reported("hostile"))
    assert HOSTILE in found.text
    regions = json.loads(found.scripts["plots"])["regions"]
    assert [region["name"] for region in regions][2:] == ["<i>r2<b>", 'r3"onload="x']
    assert "49" not in re.sub(r"\d+[\d.,]*\d+", "", found.text)  # no template is rendered twice
    assert not [tag for tag, _ in found.elements if tag in {"i", "b"}]
    assert all((a["src"] or "").startswith(PICTURE) for tag, a in found.elements if tag == "img")
    assert not [key for _, a in found.elements for key in a if key.startswith("on")]


def test_our_own_scripts_cannot_end_their_element() -> None:
    files = sorted(ASSETS.iterdir())
    files += sorted(path for path in CHARTING.rglob("*") if path.is_file())
    assert {"page.css", "plots.js", "chart.js", "uPlot.iife.min.js"} <= {file.name for file in files}
    assert not [file.name for file in files if "</" in file.read_text()]


def test_the_first_screen_has_verdict_trust_and_results(reported: Reported) -> None:
    first = page(reported("passed")).sections["first"]
    assert "Passed" in first
    assert "3 of 3 expectations held." in first.replace("\u00a0", " ")
    assert "Valid" in first
    assert "median delay within 0.12" in first
    assert "0.98" in first


def test_numbers_of_an_invalid_run_are_beside_its_verdict(reported: Reported) -> None:
    found = page(reported("invalid"))
    assert "the kernel dropped 17 packets" in found.sections["first"]
    for section in ("first", "what-happened", "recovery", "links", "network"):
        assert QUALIFIER in found.sections[section], section
    assert "Invalid run" in found.text
    assert QUALIFIER not in page(reported("passed")).text


def test_the_page_of_a_crashed_run_names_the_failed_processes(reported: Reported) -> None:
    found = page(reported("crashed"))
    assert "Crashed" in found.sections["first"]
    assert "r0/client-1 was killed by signal 9" in found.sections["what-ran"]
    assert "signal 9, unexpected" in found.sections["what-ran"]
    assert found.text.count("Not measured in this run.") == 2
    assert "Tables that the analysis did not write: throughput" in found.sections["what-ran"]


def test_an_interrupted_run_is_not_called_crashed(fresh_run: RunDirectory) -> None:
    set_run(fresh_run, outcome="interrupted")
    change_summary(fresh_run, lambda summary: summary["fidelity"].update(valid=False), verdict="crashed")
    found = shown(fresh_run)
    assert "Interrupted" in found.sections["first"]
    assert "Interrupted run." in found.text
    assert "crashed" not in found.text.lower()


def test_without_captures_the_page_names_its_sources(reported: Reported) -> None:
    found = page(reported("uncaptured"))
    assert "No packets were captured" in found.sections["what-happened"]
    assert "not measured: no packets were captured" in found.sections["links"]
    assert "not measured: no packets were captured" in found.sections["fidelity"]


def test_only_a_page_of_known_messages_has_the_command_for_them(fresh_run: RunDirectory) -> None:
    def has_command() -> bool:
        return any(attributes.get("id") == "moment" for _, attributes in shown(fresh_run).elements)

    assert has_command()
    content = json.loads(fresh_run.run_json.read_text())
    content["plan"]["system"] = "unknown"
    fresh_run.run_json.write_text(json.dumps(content))
    assert not has_command()


def test_our_numbers_are_beside_the_papers_words(reported: Reported) -> None:
    recovery = page(reported("passed")).sections["recovery"]
    assert "Sprinkler (2013), section 5.3" in recovery
    assert re.search(
        r"Events flow again.*?0\.98.*?The throughput recovers shortly after time t = 20", recovery, re.S
    )


def test_each_faults_convergence_is_shown_by_both_methods(reported: Reported) -> None:
    recovery = page(reported("passed")).sections["recovery"]
    assert "every stream flowed again at every client within 0.21" in recovery
    assert (
        "RFC 6412: full convergence time, rate-derived method" in reported("passed").report_html.read_text()
    )


def test_a_stream_that_stays_stalled_is_reported(fresh_run: RunDirectory) -> None:
    nothing = dict.fromkeys(("full_s", "median_s", "beyond_way_s", "wait_max_s"))
    stalled = nothing | {"stalled": 2, "connected": False}
    change_summary(fresh_run, lambda summary: summary["convergence"].update(stalled))
    recovery = shown(fresh_run).sections["recovery"].replace("\u00a0", " ")
    assert "2 streams never reached a connected client" in recovery
    assert "The links that were up in both directions did not connect all regions" in recovery


def test_a_links_state_and_why_it_is_not_proven_are_beside_it(reported: Reported) -> None:
    fidelity = page(reported("invalid")).sections["fidelity"]
    for words in ("proven", "violated", "the kernel dropped 17 packets", "unproven", "9 packets are too few"):
        assert words in fidelity
    assert "Unproven periods that these depend on (1)" in page(reported("invalid")).sections["network"]
    assert "Why" not in page(reported("passed")).sections["fidelity"]


def test_without_faults_or_a_paper_their_sections_are_absent(reported: Reported) -> None:
    found = page(reported("undisturbed"))
    assert "recovery" not in found.sections
    assert "Sprinkler (2013)" not in found.text


def change_summary(run: RunDirectory, change: Callable[[dict[str, Any]], None], **fields: str) -> None:
    """Rewrite summary.json."""
    content = json.loads(run.summary_json.read_text()) | fields
    change(content)
    run.summary_json.write_text(json.dumps(content))


def test_null_figures_are_shown_as_not_measured_with_the_reason(fresh_run: RunDirectory) -> None:
    def unmeasured(summary: dict[str, Any]) -> None:
        summary["recovery"]["cut"] |= {"catch_up_s": None, "settled_s": None}
        summary["fidelity"]["notes"] = ["recovery.cut: catch_up_s: it was not over at the end"]

    change_summary(fresh_run, unmeasured)
    found = shown(fresh_run)
    assert re.search(r"Caught up.*?not measured", found.sections["recovery"], re.S)
    assert "cut: Caught up: it was not over at the end" in found.sections["first"]


def test_unusable_parts_of_a_capture_are_shown_beside_it(fresh_run: RunDirectory) -> None:
    damaged = {"capture": "r2-proxy-0-eth0", "packets": 9, "bytes": 999, "good_bytes": 900}
    damaged |= {"unused": [{"what": "packets of link type 147", "count": 12}], "problem": "cut off"}
    table = pa.Table.from_pylist([damaged], schema=CAPTURES)
    fresh_run.table("captures").mkdir()
    pq.write_table(table, fresh_run.table("captures") / "part-0.parquet")
    assert "12 packets of link type 147; cut off" in shown(fresh_run).text


def test_why_a_run_failed_is_named_first(fresh_run: RunDirectory) -> None:
    failed = {"code": 1, "signal": None, "time_ns": 1, "expected": False}
    processes = json.loads(fresh_run.run_json.read_text())["processes"]
    set_run(fresh_run, processes=[processes[0] | {"exit": failed}, *processes[1:]])
    assert "did not end as planned: r0/proxy-0" in shown(fresh_run).sections["first"]
    change_summary(fresh_run, lambda summary: summary["expectations"][2].update(held=False), verdict="failed")
    first = shown(fresh_run).sections["first"]
    assert first.index("recovery.cut.switch_s <= 2") < first.index("events.lost == 0")
    assert "2 of 3" in first.replace("\u00a0", " ")


def test_a_damaged_table_counts_as_missing(fresh_run: RunDirectory) -> None:
    tables = ("throughput", "latency", "recovery", "fidelity")
    for table in tables:
        part = next(fresh_run.table(table).glob("*.parquet"))
        part.write_bytes(part.read_bytes()[:100])
    said = f"Tables that the analysis did not write: {', '.join(tables)}"
    assert said in shown(fresh_run).sections["what-ran"]


def test_a_minimal_run_gives_a_page(fresh_run: RunDirectory) -> None:
    fresh_run.run_json.unlink()
    set_run(fresh_run)
    fresh_run.summary_json.write_text('{"schema": 1, "verdict": "crashed"}')
    shutil.rmtree(fresh_run.analysis)
    found = shown(fresh_run)
    assert found.whole
    assert "Crashed" in found.sections["first"]


def test_writing_again_gives_the_same_page(reported: Reported) -> None:
    first = reported("passed").report_html.read_bytes()
    assert write_page(reported("passed")).read_bytes() == first


def test_a_run_without_an_analysis_is_refused(fresh_run: RunDirectory) -> None:
    fresh_run.summary_json.unlink()
    with pytest.raises(InputError, match="not analysed yet: run `cutset analyze"):
        write_report(fresh_run)
    assert not fresh_run.report_html.exists()
