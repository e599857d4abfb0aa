"""The pages of a list of studies and sweeps: for each system its paper's numbers beside ours, in Markdown."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from analysis.pages.study.results_pages import MeasuredPoint, numbers_of
from experiments.files.whole_files import write_whole


def write_paper_pages(folder: Path, points: Mapping[str, Sequence[tuple[str, MeasuredPoint]]]) -> list[Path]:
    """Write NAME.md for each system into the folder of its studies and sweeps; return the files.

    points: by system, each with the name of its directory in the folder.
    """
    pages = []
    for system, measured in points.items():
        lines = [f"# {system}: the paper's numbers and ours", ""]
        for name in dict.fromkeys(point.name for _, point in measured):
            mine = [point for _, point in measured if point.name == name]
            reports = [f"[{each}]({each}/report.html)" for each, point in measured if point.name == name]
            plans = [(system, name, point.parameters) for point in mine]
            lines += [
                f"## {name}",
                "",
                *numbers_of(name, mine, plans),
                "",
                f"Reports: {', '.join(reports)}",
                "",
            ]
        page = folder / f"{system}.md"
        write_whole(page, "\n".join(lines))
        pages.append(page)
    return pages
