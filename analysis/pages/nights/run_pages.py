"""A page for each run: its verdict with reasons, its numbers beside the usual ones, and links.

A run's page depends only on the run and the nights before it, so it is written once and then kept
(`analysis.pages.nights.site` decides which are rewritten), unless a report appears or disappears.
"""

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment
from markupsafe import Markup, escape

from analysis.pages.nights.night_reader import EarlierNights, Levels, Row
from analysis.pages.nights.site_paths import Site, report_of, to_comparison, to_entry
from analysis.pages.nights.verdicts import SIGNS, status_of, verdict_text
from analysis.pages.report.formatting import (
    EN_DASH,
    change_of,
    change_text,
    day_text,
    seconds,
    title_of,
    value_text,
)
from analysis.pages.report.page import short_commit
from experiments.records.rundir import RunDirectory, run_argument

_LINK = b'<a id="report"'
"""The start of the link to the run's report in the template."""


def pages(
    past: EarlierNights, site: Site, usual: Levels, wanted: Sequence[int], templates: Environment
) -> Iterator[tuple[Path, str]]:
    """Yield path and contents of the pages of these runs (indices of `past.runs`)."""
    template = templates.get_template("run.html.j2")
    head: Callable[[str], str] = getattr(templates.get_template("nights_macros.html.j2").module, "head")  # noqa: B009
    looks = head("../")
    compared = {page.name for page in site.comparison("").parent.iterdir()}
    measured = _by_run(past, past.metrics, wanted, ("metric", "value", "unit"))
    kept = _by_run(past, past.expectations, wanted, ("text", "held"))
    titles = {metric: escape(title_of(metric)) for metric in pc.unique(past.metrics["metric"]).to_pylist()}
    for index in wanted:
        run = past.runs[index]
        entry = past.entries[run["suite"], run["entry"]]
        file = site.run(run["run"])
        good = entry.last_good[run["night"]]
        page = template.render(
            run=run,
            looks=looks,
            night=day_text(date.fromisoformat(run["night"])),
            entry_address=to_entry(run["suite"], run["entry"]),
            status=status_of(run["verdict"], allowed=run["allow_failure"]),
            verdict=verdict_text(run["verdict"], allowed=run["allow_failure"]),
            sign=SIGNS[run["verdict"]],
            wrong=[
                *(text for text, held in kept[index] if not held),
                *(run["reasons"] if not run["valid"] else ()),
                *run["problems"],
            ],
            held=[text for text, held in kept[index] if held],
            report=report_of(run, file),
            compared=to_comparison(run["run"]) if file.name in compared else None,
            last_good=good["run"] if good else None,
            command=_command(good, run),
            last_good_address=site.run(good["run"]).name if good else None,
            numbers=_numbers(run, measured[index], usual, titles),
            nothing=Markup(", ").join(titles[metric] for metric, value, _ in measured[index] if value == 0),
            facts=_facts(run),
        )
        yield file, page


def _numbers(
    run: Row, measured: Sequence[tuple[Any, ...]], usual: Levels, titles: Mapping[str, Markup]
) -> Markup:
    """Return the rows of the table.

    They bypass the template, as there are half a million of them in a year.
    """
    rows = []
    for metric, value, unit in measured:
        if value == 0:
            continue
        level = usual.get((run["suite"], run["entry"], metric), {}).get(run["night"])
        shown = EN_DASH if level is None else _usual_text(level, unit)
        change = "" if level is None else change_text(change_of(level, value))
        rows.append(
            f'<tr><th scope="row">{titles[metric]}</th><td class="numeric">{_text(value, unit)}</td>'
            f'<td class="numeric">{shown}</td><td class="numeric">{change}</td></tr>'
        )
    return Markup("\n".join(rows))  # noqa: S704  (titles and units are escaped, the others are figures)


def _command(good: Row | None, run: Row) -> str:
    """Return the command that compares the run with the last good one; "" if one of them is gone."""
    if good is None or not good["path"] or not run["path"]:
        return ""
    directories = [RunDirectory(Path(one["path"])) for one in (good, run)]
    if not all(directory.summary_json.exists() for directory in directories):
        return ""
    return shlex.join(["cutset", "compare", *(run_argument(directory.path) for directory in directories)])


def _text(value: float, unit: str) -> str:
    """Return a value with its unit, escaped: the unit comes from the history and may be anything."""
    return str(escape(value_text(value, unit)))


@lru_cache(maxsize=4096)
def _usual_text(level: float, unit: str) -> str:
    """Return the text of a usual level, as `_text` does, cached: the runs of a night share it."""
    return _text(level, unit)


def leads_to_report(page: Path) -> bool:
    """Return whether an existing page links to its run's report."""
    return _LINK in page.read_bytes()


def _facts(run: Row) -> list[tuple[str, str]]:
    facts = (
        ("Experiment", run["experiment"]),
        ("Settings", run["settings"] if run["settings"] != "{}" else ""),
        ("Seed", run["large_seed"] or run["seed"]),
        ("Commit", short_commit(run["commit"])),
        ("Links", run["links"]),
        ("Outcome", run["outcome"]),
        ("Took", seconds(run["duration_s"]) if run["duration_s"] else ""),
        ("Kernel", run["kernel"]),
        ("Python", run["python"]),
        ("Directory", run["path"]),
    )
    return [(name, str(value)) for name, value in facts if value not in (None, "")]


def _by_run(
    past: EarlierNights, table: Any, wanted: Sequence[int], columns: Sequence[str]
) -> Mapping[int, list[tuple[Any, ...]]]:
    """Return these columns of the table's rows of each run, by the run's index."""
    rows, table = _rows_of(past, table, wanted)
    found: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for row, *values in zip(rows, *(table[name].to_pylist() for name in columns), strict=True):
        found[row].append(tuple(values))
    return found


def _rows_of(past: EarlierNights, table: Any, wanted: Sequence[int]) -> tuple[list[int], Any]:
    """Return the table's rows of these runs, and for each the run's index."""
    names = pa.array([past.runs[index]["run"] for index in wanted], pa.string())
    place = pc.index_in(table["run"], value_set=names)
    kept = pc.is_valid(place)
    indices = np.asarray(wanted, dtype=np.int64)
    rows = indices[place.filter(kept).to_numpy()] if len(wanted) else indices
    return rows.tolist(), table.filter(kept)
