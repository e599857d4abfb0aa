"""The page of a study: its figures, and the paper's numbers beside ours, with reasons for differences."""

from dataclasses import dataclass
from pathlib import Path

from analysis.pages.page_environment import environment
from analysis.pages.report.charts.figures import write_charts
from analysis.pages.report.charts.sweep_charts import SweepChart
from analysis.pages.report.formatting import aligned, scaled
from analysis.pages.study.results import PaperComparison, StudyResults
from experiments.campaigns.studydir import StudyDirectory
from experiments.files.whole_files import write_whole
from node.systems import resolve, studies_of

TEMPLATE = "study.html.j2"


@dataclass(frozen=True, slots=True)
class StudyContent:
    """The page's contents from a study's results. notes: how the numbers were measured."""

    charts: tuple[SweepChart, ...]
    beside: tuple[PaperComparison, ...]
    notes: tuple[str, ...] = ()


def content_of(results: StudyResults) -> StudyContent:
    """Return the contents by the study's system; none if no seed is done."""
    if not results.seeds:
        return StudyContent((), ())
    study = studies_of(results.record.system)[results.record.study]
    content: StudyContent = resolve(study.page)(results)
    return content


def write_study_report(directory: StudyDirectory) -> Path:
    """Write report.html and figures/ of a study, from the seeds that are done. Raises InputError."""
    results = StudyResults.from_directory(directory)
    content = content_of(results)
    directory.figures.mkdir(exist_ok=True)
    write_charts(content.charts, directory.figure)
    write_whole(directory.report_html, render(results, content))
    return directory.report_html


def render(results: StudyResults, content: StudyContent) -> str:
    """Return the page of a study."""
    record = results.record
    study = studies_of(record.system)[record.study]
    facts = [
        ("Study", record.study),
        ("Parameters", ", ".join(f"{name} {value}" for name, value in record.parameters.items())),
        ("Seeds", f"{len(results.seeds)} of {len(record.seeds)} done: {', '.join(map(str, results.seeds))}"),
        ("Commit", record.commit or "not recorded"),
        ("Where", "in virtual time; each seed draws its own network, members and events"),
        ("Processor time of a seed", results.shown(results.single("processor_s")) + " s"),
        ("Memory", scaled(max(results.each(results.single("memory_bytes")), default=None), "B")),
    ]
    return environment().get_template(TEMPLATE).render(
        name=record.study,
        description=study.description,
        run=results.directory.path.name,
        content=content,
        facts=facts,
    )  # fmt: skip


def as_text(content: StudyContent) -> str:
    """Return the numbers as lines."""
    rows = [(each.what, each.ours, each.paper) for each in content.beside]
    return "\n".join(aligned([("", "here", "in the paper"), *rows]))
