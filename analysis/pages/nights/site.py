"""Writes the site: the morning page, pages of experiments, and comparisons with the last good run.

Runs are linked to their own reports. An experiment's page has its changes, its trends, and its runs.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from analysis.errors import AnalysisError
from analysis.history import History
from analysis.history.regressions.checking import check_night
from analysis.history.regressions.findings import NightFindings, RegressionFinding
from analysis.pages.charting.chart_page import chart_scripts, chart_styles
from analysis.pages.comparing.page import COMPARING, write_page
from analysis.pages.comparing.sides import read_sides
from analysis.pages.nights.change_words import FindingText, finding_text
from analysis.pages.nights.morning import morning_content
from analysis.pages.nights.night_reader import EarlierNights, NightSuiteEntry, Row, levels, read_past
from analysis.pages.nights.site_paths import Site, report_of, to_comparison
from analysis.pages.nights.trend_sections import sections, trend_of
from analysis.pages.nights.verdicts import SIGNS, status_of, strip, verdict_text
from analysis.pages.page_environment import environment
from analysis.pages.report.formatting import count_of, seconds
from analysis.pages.report.page import short_commit
from experiments.files.plain_name import check_folder
from experiments.files.whole_files import write_whole
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

_HERE = Path(__file__).parent
RUNS_SHOWN = 120


def write_site(
    history: History,
    folder: Path,
    checked: Mapping[str, NightFindings] | None = None,
    left_out: Mapping[str, Sequence[str]] | None = None,
) -> Path:
    """Write the site of a history and return the morning page's path.

    checked: by suite, the check of its last night if already done. left_out: titles of tonight's runs skipped
    for lack of time, by suite. Raises AnalysisError if the history is empty, or a file cannot be written.
    """
    past = read_past(history)
    if not past.entries:
        raise AnalysisError(f"{history.folder}: there are no runs in this history, so no page can be written")
    known = {
        suite: (checked or {}).get(suite) or check_night(history, past.last_night(suite), suite)
        for suite in past.suites
    }
    site = Site(folder)
    try:
        for page in (site.index, site.entry("", ""), site.comparison("")):
            check_folder(page.parent)
            page.parent.mkdir(parents=True, exist_ok=True)
        _write(past, site, known, history.folder, left_out or {})
    except OSError as error:
        raise AnalysisError(f"{error.filename}: the site cannot be written: {error.strerror}") from error
    return site.index


def _write(
    past: EarlierNights,
    site: Site,
    checked: Mapping[str, NightFindings],
    folder: Path,
    left_out: Mapping[str, Sequence[str]],
) -> None:
    templates = environment(_HERE, COMPARING)
    usual = levels(past)
    asset: Any = templates.globals["asset"]
    looks = (asset("page.css"), str(chart_styles()), asset("nights.css"))
    write_whole(site.folder / "looks.css", "\n".join(looks), sync=False)
    write_whole(site.folder / "theme.js", asset("theme.js"), sync=False)
    write_whole(site.folder / "charts.js", str(chart_scripts()), sync=False)
    _compare(past, site, checked.values())
    findings = {
        key: [found for found in checked[key[0]].findings if found.entry == key[1]] for key in past.entries
    }
    names = {run["run"]: run for run in past.runs}
    words = {
        id(finding): finding_text(finding, site, names, trend_of(entry, finding, findings[key]))
        for key, entry in past.entries.items()
        for finding in findings[key]
    }
    missed = _missed_expectations(past)
    for key, entry in past.entries.items():
        texts = [words[id(found)] for found in findings[key]]
        content = entry_content(entry, findings[key], texts, run_rows(entry, site, missed))
        write_whole(
            site.entry(*key), templates.get_template("experiment.html.j2").render(content), sync=False
        )
    content = morning_content(past, site, checked, usual, words, left_out=left_out) | {"folder": folder}
    write_whole(site.index, templates.get_template("index.html.j2").render(content), sync=False)


def _compare(past: EarlierNights, site: Site, checked: Iterable[NightFindings]) -> None:
    """Compare a run of tonight of every experiment with its last good one, if both still exist.

    If something got worse, the last good run is one from before that.
    """
    for night in checked:
        before = {finding.entry: finding.runs_before for finding in reversed(night.worse)}
        for verdict in night.verdicts:
            names = (*before.get(verdict.entry, ()), *verdict.last_good_runs)
            good = next(filter(None, (_analysed(past, name) for name in names)), None)
            for ran in verdict.runs:
                page, run = site.comparison(ran.run), _analysed(past, ran.run)
                if good is not None and run is not None and not page.exists():
                    _compare_two(good, run, page)


def _analysed(past: EarlierNights, name: str) -> RunDirectory | None:
    """Return the directory of a run, if it exists and is analysed."""
    run = past.run(name)
    directory = RunDirectory(Path(run["path"])) if run is not None and run["path"] else None
    return directory if directory is not None and directory.summary_json.exists() else None


def _compare_two(good: RunDirectory, run: RunDirectory, page: Path) -> None:
    try:
        write_page(read_sides([good, run]), page)
    except InputError:
        return  # one was pruned or damaged: then there is no comparison


def entry_content(
    entry: NightSuiteEntry,
    findings: Sequence[RegressionFinding],
    texts: Sequence[FindingText],
    runs: Sequence[Row],
) -> dict[str, Any]:
    """Return the values that the template uses. runs: `run_rows`."""
    shown, nothing = sections(entry, findings)
    total = sum(len(runs) for runs in entry.nights.values())
    nights = len(entry.nights)
    return {
        "entry": entry,
        "described": f"{entry.experiment}, {count_of(total, 'run')} of {count_of(nights, 'night')}",
        "cells": strip(entry, entry.last),
        "found": texts,
        "sections": shown,
        "nothing": nothing,
        "runs": runs,
        "more_runs": total - len(runs),
    }


def run_rows(entry: NightSuiteEntry, site: Site, missed: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return the latest runs, newest first. missed: the expectations that did not hold, by run."""
    page = site.entry(*entry.key)
    runs = [run for night in reversed(entry.nights) for run in entry.nights[night]][:RUNS_SHOWN]
    return [
        {
            "night": run["night"],
            "run": run["run"],
            "status": status_of(run["verdict"], allowed=run["allow_failure"]),
            "sign": SIGNS[run["verdict"]],
            "verdict": verdict_text(run["verdict"], allowed=run["allow_failure"]),
            "why": "; ".join(
                (*missed.get(run["run"], ()), *(() if run["valid"] else run["reasons"]), *run["problems"])
            ),
            "commit": short_commit(run["commit"]) or "",
            "took": seconds(run["duration_s"]) if run["duration_s"] else "",
            "report": report_of(run, page),
            "compared": to_comparison(run["run"]) if site.comparison(run["run"]).exists() else None,
        }
        for run in runs
    ]


def _missed_expectations(past: EarlierNights) -> Mapping[str, Sequence[str]]:
    """Return the expectations that did not hold, by run."""
    missed: dict[str, list[str]] = defaultdict(list)
    for row in past.expectations.filter(pc.invert(past.expectations["held"])).to_pylist():
        missed[row["run"]].append(row["text"])
    return missed
