"""The tables of docs/results/: numbers of studies and sweeps beside the papers', each with seed and commit.

`docs/results/measured/` keeps the measured numbers, a file for each system; `cutset study --publish` adds to
it. A page has a table between `<!-- numbers NAME -->` and `<!-- end -->`, where NAME is a study, an
experiment, or `others of PAPER`: the paper's values that no table of the page has. People write everything
else. `python -m analysis.pages.study.results_pages` writes the tables again.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict

from analysis.pages.report.formatting import NOT_MEASURED
from analysis.pages.report.sweep_page import sweep_charts
from analysis.pages.study.results import StudyResults
from analysis.pages.study.study_page import content_of
from analysis.sweeps import read_sweep
from analysis.systems.papers import PaperComparison, PaperValue, value_of_key, values_of
from experiments.campaigns.studies import StudyPlan, planned_studies
from experiments.campaigns.studydir import StudyDirectory
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.files.whole_files import write_whole
from experiments.loader import experiment_names, load_experiment
from experiments.records.json_files import read_json, write_json
from experiments.records.validated_json import STRICT, Free, Name, Seed, Text, from_json

PAGES = Path(__file__).parents[3] / "docs" / "results"
NUMBERS = re.compile(r"(<!-- numbers ([^\n]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
OTHERS = "others of "
OF_PAPER = ("paper", "where", "note")
COMMIT_CHARS = 8


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A measured number. paper: the key of the paper's value, or words."""

    what: Text
    ours: Text
    paper: Text = ""
    why: Text = ""

    @property
    def of_paper(self) -> PaperValue | None:
        """The paper's value as it now stands in papers.yaml."""
        return value_of_key(self.paper)


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """The numbers of a study or sweep. parameters: of a study, or a sweep's that differ from its file."""

    name: Name
    parameters: Free
    seeds: tuple[Seed, ...]
    commit: Text
    rows: tuple[MeasuredRow, ...]

    @property
    def origin(self) -> str:
        """Seeds and commit as text."""
        seeds = (
            f"seeds {self.seeds[0]} to {self.seeds[-1]}" if len(self.seeds) > 1 else f"seed {self.seeds[0]}"
        )
        return f"{seeds} at {self.commit[:COMMIT_CHARS] or 'an unknown commit'}"


@dataclass(frozen=True, slots=True)
class _Measured:
    """The content of a file of measured numbers."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    points: tuple[MeasuredPoint, ...] = ()


def measured_study(directory: StudyDirectory) -> MeasuredPoint:
    """Return the numbers of a study with at least one seed that is done. Raises InputError."""
    results = StudyResults.from_directory(directory)
    record = results.record
    rows = tuple(map(_row, content_of(results).beside))
    return MeasuredPoint(record.study, record.parameters, tuple(results.seeds), record.commit, rows)


def measured_sweep(directory: SweepDirectory) -> MeasuredPoint:
    """Return the numbers of a sweep. Raises InputError."""
    sweep = read_sweep(directory)
    record = sweep.record
    rows = tuple(_row(each) for chart in sweep_charts(sweep) for each in chart.comparisons)
    verdicts = Counter(run.verdict or "not made" for run in record.runs)
    rows += (MeasuredRow("Runs", ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())),)
    seeds = tuple(range(record.seed, record.seed + record.repeat))
    name = str(sweep.experiment["name"])
    given, usual = dict(_flat(record.experiment)), dict(_flat(_experiment(name)))
    changed = {path: value for path, value in given.items() if usual.get(path) != value}
    return MeasuredPoint(name, changed, seeds, record.commit or "", rows)


def _experiment(name: str) -> Mapping[str, Any]:
    """Return an experiment as its file has it; nothing for one of the user's."""
    if name not in experiment_names():
        return {}
    content: dict[str, Any] = load_experiment(name).model_dump(mode="json", by_alias=True, exclude_none=True)
    return content


def _flat(content: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values by dotted path, without expectations."""
    for name, value in content.items():
        if isinstance(value, Mapping) and name != "sweep":
            yield from _flat(value, f"{path}{name}.")
        elif not name.startswith("expect"):
            yield f"{path}{name}", value


def _row(each: PaperComparison) -> MeasuredRow:
    paper = each.paper if isinstance(each.paper, str) else each.paper.key
    return MeasuredRow(*map(_plain, (each.what, each.ours, paper, each.reason)))


def _plain(text: str) -> str:
    """Return text with ordinary spaces, and commas between groups of digits."""
    return text.replace("\u202f", ",").replace("\u00a0", " ")


def publish(points: Mapping[str, Sequence[MeasuredPoint]], pages: Path = PAGES) -> list[Path]:
    """Add measured numbers of systems, in place of earlier ones of the same point; write the pages again.

    Returns the pages. Raises InputError if a file of numbers is damaged, OSError.
    """
    for system, new in points.items():
        path = pages / "measured" / f"{system}.json"
        kept = [old for old in _read(path) if not any(_replaces(point, old) for point in new)]
        points_now = sorted((*kept, *new), key=lambda each: (each.name, str(sorted(each.parameters.items()))))
        path.parent.mkdir(exist_ok=True)
        write_json(path, asdict(_Measured(tuple(points_now))))
    return write_pages(pages)


def _replaces(new: MeasuredPoint, old: MeasuredPoint) -> bool:
    """Return whether a point replaces an older one: equal parameters, where a study may have gained some
    since.
    """
    same = old.parameters.items() <= new.parameters.items() if old.parameters else not new.parameters
    return old.name == new.name and same


def write_pages(pages: Path = PAGES) -> list[Path]:
    """Write the tables of all pages again; return the pages."""
    for path, text in written_pages(pages):
        write_whole(path, text)
    return [path for path, _ in written_pages(pages)]


def written_pages(pages: Path = PAGES) -> Iterator[tuple[Path, str]]:
    """Yield each page that has tables, with its text as it should be."""
    measured = [point for path in sorted((pages / "measured").glob("*.json")) for point in _read(path)]
    planned = planned_studies(None, ())
    for path in sorted(pages.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        names = [name for _, name, _ in NUMBERS.findall(text)]
        shown = {row.paper for point in measured if point.name in names for row in point.rows}

        def block(found: re.Match[str], shown: set[str] = shown) -> str:
            begin, name, end = found.groups()
            if name.startswith(OTHERS):
                lines = _others(name.removeprefix(OTHERS), shown)
            else:
                lines = numbers_of(name, [point for point in measured if point.name == name], planned)
            return "\n".join([begin, *lines, "", end])

        if names:
            yield path, NUMBERS.sub(block, text)


def numbers_of(name: str, measured: Sequence[MeasuredPoint], planned: Sequence[StudyPlan]) -> list[str]:
    """Return the table of a study or experiment: a column for each planned point.

    Points with other parameters, as small versions, are shown until a planned one is measured.
    """
    wanted = [plan[2] for plan in planned if plan[1] == name] or [{}]
    found = [(parameters, _measured_at(parameters, measured)) for parameters in wanted]
    if not any(point for _, point in found):
        found += [(point.parameters, point) for point in measured]
    labels = [_label(parameters, [each for each, _ in found]) for parameters, _ in found]
    points = [point for _, point in found if point is not None]
    if not points:
        return [f"Not measured: `{name}`" + (f" with {'; '.join(labels)}." if any(labels) else ".")]
    origins = {point.origin for point in points}
    usual = "here" if len(found) == 1 else "as in its file"
    columns: dict[str, list[MeasuredPoint | None]] = {}  # points with other rows may share one
    for label, (_, point) in zip(labels, found, strict=True):
        origin = f" ({point.origin})" if point and len(origins) > 1 else ""
        columns.setdefault(f"{label or usual}{origin}", []).append(point)
    rows = [
        (dict(_numbered(row for point in column if point for row in point.rows)), None not in column)
        for column in columns.values()
    ]
    keys = list(dict.fromkeys(key for column, _ in rows for key in column))
    given = f"`{name}`, " + (f"{next(iter(origins))}." if len(origins) == 1 else "seeds and commits above.")
    head, lines, same = _without_same(["", *columns, *OF_PAPER], [_line(key, rows) for key in keys])
    return [*_table(head, lines), "", " ".join([given, *same])]


def _without_same(
    head: Sequence[str], lines: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]], list[str]]:
    """Leave out columns about the paper that are empty or equal in several lines; return these as text."""
    kept, same = list(range(len(head) - len(OF_PAPER))), list[str]()
    for at in range(len(kept), len(head)):
        texts = {line[at] for line in lines}
        if len(texts) > 1 or (len(lines) == 1 and texts != {""}):
            kept.append(at)
        else:
            same += [f"{head[at].capitalize()}: {text}." for text in texts if text]
    return [head[at] for at in kept], [[line[at] for at in kept] for line in lines], same


def _measured_at(parameters: Mapping[str, Any], measured: Iterable[MeasuredPoint]) -> MeasuredPoint | None:
    """Return the measured point whose parameters are these; later ones may have been added since."""
    return next((point for point in measured if point.parameters.items() <= parameters.items()), None)


def _label(parameters: Mapping[str, Any], wanted: Sequence[Mapping[str, Any]]) -> str:
    """Return the parameters that differ between points, except those that rows name: "all" in a point."""
    values = {name: {str(each[name]) for each in wanted if name in each} for name in parameters}
    differing = [  # a sweep's parameters are those that differ from its file
        name for name, found in values.items() if "all" not in found and (not all(wanted) or len(found) > 1)
    ]
    return ", ".join(
        "some of its points"
        if name == "sweep"
        else f"{name}={parameters[name]}"
        if "." in name
        else f"{_text(parameters[name])} {name.replace('_', ' ')}"
        for name in differing
    )


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _numbered(rows: Iterable[MeasuredRow]) -> Iterator[tuple[tuple[str, int], MeasuredRow]]:
    """Yield rows with their name, and its number if it occurs again."""
    seen: Counter[str] = Counter()
    for row in rows:
        yield (row.what, seen[row.what]), row
        seen[row.what] += 1


def _line(
    key: tuple[str, int], columns: Sequence[tuple[Mapping[tuple[str, int], MeasuredRow], bool]]
) -> list[str]:
    """Return a line of the table. Values of the paper that differ between points are beside ours.

    columns: the rows of each, and whether all of its points are measured.
    """
    rows = [column.get(key) for column, _ in columns]
    values = [row.of_paper if row else None for row in rows]
    paper_texts = [
        value.text if value else row.paper if row else "" for row, value in zip(rows, values, strict=True)
    ]
    is_same = len({text for row, text in zip(rows, paper_texts, strict=True) if row}) == 1
    cells = [
        ("" if is_measured else NOT_MEASURED)
        if row is None
        else row.ours
        if is_same or not value
        else f"{row.ours} (paper: {value.text})"
        for (_, is_measured), row, value in zip(columns, rows, values, strict=True)
    ]
    known = [value for value in values if value]
    why = next((row.why for row in rows if row and row.why), known[0].why if known else "")
    paper = next(filter(None, paper_texts), "") if is_same else "beside ours"
    return [key[0], *cells, paper, known[0].where if known else "", why]


def _others(paper: str, shown: set[str]) -> list[str]:
    """Return the table of the paper's values that no table of the page has."""
    rows = [
        [value.what, NOT_MEASURED, value.text, value.where, value.why]
        for value in values_of(paper)
        if value.key not in shown
    ]
    return _table(["", "here", *OF_PAPER], rows) if rows else ["All values are above."]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(each).replace("\n", " ") + " |" for each in (head, ["---"] * len(head), *rows)]


def _read(path: Path) -> tuple[MeasuredPoint, ...]:
    return from_json(_Measured, read_json(path), path).points if path.exists() else ()


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


if __name__ == "__main__":
    write_pages()
