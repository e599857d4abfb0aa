"""Parts of pages that only systems of Cutset have: sections of reports, pages of studies, papers' figures."""

from collections.abc import Callable, Mapping

from analysis.pages.report.charts.sweep_charts import ChartBuilder
from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.sections import Report, ReportSection
from analysis.pages.study.results import StudyContent, StudyResults
from analysis.systems.meghdoot import failures, hops, paper, readings
from analysis.systems.meghdoot.report import report as meghdoot_report
from analysis.systems.scribe import churn, depth, groups, joins, routes
from analysis.systems.scribe.report import report as scribe_report
from analysis.systems.sprinkler.figures import FIGURES
from experiments.records.rundir import RunDirectory
from node.systems import report_of

REPORTS: Mapping[str, Report] = {"meghdoot": meghdoot_report, "scribe": scribe_report}
STUDY_PAGES: Mapping[str, Callable[[StudyResults], StudyContent]] = {
    "meghdoot-events": paper.page,
    "meghdoot-failures": failures.page,
    "meghdoot-hops": hops.page,
    "meghdoot-readings": readings.page,
    "meghdoot-stocks": paper.page,
    "meghdoot-subscriptions": paper.page,
    "meghdoot-uniform": paper.page,
    "scribe-churn": churn.page,
    "scribe-depth": depth.page,
    "scribe-groups": groups.page,
    "scribe-groups-bounded": groups.page,
    "scribe-joins": joins.page,
    "scribe-routes": routes.page,
    "scribe-small-groups": groups.page,
    "scribe-small-groups-collapse": groups.page,
}
PAPERS: Mapping[str, Mapping[str, ChartBuilder]] = {"sprinkler-2013": FIGURES}
"""Builders of charts, by the name of a paper in experiments (`paper.document`) and figure."""


def sections(record: AnalysedRun, run: RunDirectory) -> tuple[ReportSection, ...]:
    """Return the sections that the system of a run adds to its report."""
    system = record.plan.system
    report: Report | None = REPORTS.get(system) or report_of(system)
    return () if report is None else tuple(report(record, run))
