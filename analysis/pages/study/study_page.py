"""The page of a study: its figures, and the paper's numbers beside ours, with reasons for differences."""

from pathlib import Path

from analysis.pages.page_environment import environment
from analysis.pages.report.charts.figures import write_charts
from analysis.pages.report.formatting import aligned, scaled
from analysis.pages.study.results import StudyContent, StudyResults
from analysis.systems.catalog import STUDY_PAGES
from experiments.campaigns.studydir import StudyDirectory
from experiments.files.whole_files import write_whole
from node.systems import studies_of

TEMPLATE = "study.html.j2"


def content_of(results: StudyResults) -> StudyContent:
    """Return the contents of a study's page; none if no seed is done, or the study has none."""
    page = STUDY_PAGES.get(results.record.study)
    return page(results) if page and results.seeds else StudyContent((), ())


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
    rows = [(each.what, each.ours, each.paper_text) for each in content.beside]
    return "\n".join(aligned([("", "here", "in the paper"), *rows]))
