"""Parts of pages that only systems of Cutset have: sections of reports, pages of studies, papers' figures."""

from collections.abc import Callable, Mapping

from analysis.pages.report.charts.sweep_charts import ChartBuilder
from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.sections import Report, ReportSection
from analysis.pages.study.results import StudyContent, StudyResults
from analysis.systems import (
    meghdoot_failures,
    meghdoot_hops,
    meghdoot_paper,
    meghdoot_readings,
    meghdoot_report,
    scribe_churn,
    scribe_depth,
    scribe_groups,
    scribe_joins,
    scribe_report,
    scribe_routes,
    sprinkler_figures,
)
from experiments.records.rundir import RunDirectory
from node.systems import report_of

REPORTS: Mapping[str, Report] = {"meghdoot": meghdoot_report.report, "scribe": scribe_report.report}
STUDY_PAGES: Mapping[str, Callable[[StudyResults], StudyContent]] = {
    "meghdoot-events": meghdoot_paper.page,
    "meghdoot-failures": meghdoot_failures.page,
    "meghdoot-hops": meghdoot_hops.page,
    "meghdoot-readings": meghdoot_readings.page,
    "meghdoot-stocks": meghdoot_paper.page,
    "meghdoot-subscriptions": meghdoot_paper.page,
    "meghdoot-uniform": meghdoot_paper.page,
    "scribe-churn": scribe_churn.page,
    "scribe-depth": scribe_depth.page,
    "scribe-groups": scribe_groups.page,
    "scribe-groups-bounded": scribe_groups.page,
    "scribe-joins": scribe_joins.page,
    "scribe-routes": scribe_routes.page,
    "scribe-small-groups": scribe_groups.page,
    "scribe-small-groups-collapse": scribe_groups.page,
}
PAPERS: Mapping[str, Mapping[str, ChartBuilder]] = {"sprinkler-2013": sprinkler_figures.FIGURES}
"""Builders of charts, by the name of a paper in experiments (`paper.document`) and figure."""


def sections(record: AnalysedRun, run: RunDirectory) -> tuple[ReportSection, ...]:
    """Return the sections that the system of a run adds to its report."""
    system = record.plan.system
    report: Report | None = REPORTS.get(system) or report_of(system)
    return () if report is None else tuple(report(record, run))
