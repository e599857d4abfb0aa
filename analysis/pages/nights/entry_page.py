"""An experiment's page: its changes, its trends, and its runs."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from analysis.history.regressions.findings import Finding
from analysis.pages.nights.change_words import Told
from analysis.pages.nights.places import Site, report_of
from analysis.pages.nights.reading import Entry
from analysis.pages.nights.trend_sections import sections
from analysis.pages.nights.verdicts import SIGNS, status_of, strip, verdict_text
from analysis.pages.report.formatting import count_of, seconds
from analysis.pages.report.page import short_commit

RUNS_SHOWN = 120
_HEADINGS = ("Night", "Run", "Verdict", "Commit", "Took", "Report")


def entry_content(
    entry: Entry, findings: Sequence[Finding], told: Sequence[Told], site: Site
) -> dict[str, Any]:
    """What its template names."""
    shown, nothing = sections(entry, findings)
    total = sum(len(runs) for runs in entry.nights.values())
    nights = len(entry.nights)
    return {
        "entry": entry,
        "described": f"{entry.experiment}, {count_of(total, 'run')} of {count_of(nights, 'night')}",
        "cells": strip(entry, entry.last),
        "found": told,
        "sections": shown,
        "nothing": nothing,
        "runs_table": _runs_table(entry, site),
        "more_runs": max(0, total - RUNS_SHOWN),
    }


def _runs_table(entry: Entry, site: Site) -> Markup:
    """The latest runs, newest first."""
    page = site.entry(*entry.key)
    runs = [run for night in reversed(entry.nights) for run in entry.nights[night]][:RUNS_SHOWN]
    rows = []
    for run in runs:
        report = report_of(run, page)
        rows.append(
            Markup(
                '<tr><td>{night}</td><td><a href="../runs/{file}">{run}</a></td>'
                '<td><span class="status {status}">{sign} {verdict}</span></td><td><code>{commit}</code></td>'
                '<td class="numeric">{took}</td><td>{report}</td></tr>'
            ).format(
                night=run["night"],
                file=site.run(run["run"]).name,
                run=run["run"],
                status=status_of(run["verdict"], allowed=run["allow_failure"]),
                sign=SIGNS[run["verdict"]],
                verdict=verdict_text(run["verdict"], allowed=run["allow_failure"]),
                commit=short_commit(run["commit"]) or "",
                took=seconds(run["duration_s"]) if run["duration_s"] else "",
                report=Markup('<a href="{}">report</a>').format(report) if report else "",
            )
        )
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(escape(name)) for name in _HEADINGS)
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="Runs"><table><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(head, Markup("").join(rows))
