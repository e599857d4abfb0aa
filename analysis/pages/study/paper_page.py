"""The pages of a list of studies: for each paper its numbers beside ours, in Markdown."""

from collections.abc import Sequence
from pathlib import Path

from analysis.pages.study.results import StudyResults
from analysis.pages.study.study_page import content_of
from experiments.campaigns.studydir import StudyDirectory
from experiments.files.whole_files import write_whole
from node.systems import studies_of


def write_paper_pages(folder: Path, directories: Sequence[StudyDirectory]) -> list[Path]:
    """Write NAME.md for each system's paper into the folder of its studies; return the files."""
    parts: dict[str, list[str]] = {}
    for directory in directories:
        results = StudyResults.from_directory(directory)
        parts.setdefault(results.record.system, []).append(_section(folder, results))
    pages = []
    for system, sections in parts.items():
        page = folder / f"{system}.md"
        write_whole(page, f"# {system}: the paper's numbers and ours\n\n" + "\n".join(sections))
        pages.append(page)
    return pages


def _section(folder: Path, results: StudyResults) -> str:
    """Return the numbers of one study as a section."""
    record, content = results.record, content_of(results)
    report = results.directory.report_html.relative_to(folder)
    given = ", ".join(f"{name} {value}" for name, value in record.parameters.items())
    rows = [("", "here", "in the paper", "where", "reason"), ("---",) * 5]
    rows += [(each.what, each.ours, each.said, each.where, each.why) for each in content.beside]
    lines = [
        f"## [{results.directory.path.name}]({report})",
        "",
        f"{studies_of(record.system)[record.study].description}; {given}; "
        f"seeds {', '.join(map(str, results.seeds))} at {record.commit or 'an unknown commit'}",
        "",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        *(f"- {note}" for note in content.notes),
        "",
    ]
    return "\n".join(lines)
