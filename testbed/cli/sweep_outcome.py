"""The short summary of a sweep on standard output: how many passed, which did not and how to replay them."""

import shlex
from collections import Counter
from collections.abc import Sequence

import click

from experiments.sweepdir import PointRecord, SweepDirectory, SweepRecord
from testbed.cli.outcome import COLOURS, row
from testbed.cli.sweep_text import point_title, replay_command

SHOWN_MAX = 10  # of the runs that did not pass


def show_sweep(directory: SweepDirectory, record: SweepRecord, given: tuple[str, Sequence[str]]) -> None:
    """Print it. given: the experiment as the user named it, and the overrides."""
    verdict = verdict_of(record)
    row("verdict", click.style(verdict, fg=COLOURS.get(verdict), bold=True))
    row("runs", runs_text(record))
    for point in not_passed(record)[:SHOWN_MAX]:
        row(point.verdict or "crashed", " ".join(filter(None, [point_title(point), point.problem])))
        row("", f"replay: {replay_command(*given, point, record.place)}")
    if (more := len(not_passed(record)) - SHOWN_MAX) > 0:
        row("", f"and {more} more")
    if any(not point.ended for point in record.points):
        name, overrides = given
        words = ["cutset", "run", name, *(word for override in overrides for word in ("--set", override))]
        words += ["--seed", str(record.seed), "--repeat", str(record.repeat), "--on", record.place]
        words += ["--links", record.links, "--resume", str(directory.path)]
        row("go on with", shlex.join(words))
    if directory.report_html.exists():
        row("report", str(directory.report_html))
    row("sweep", str(directory.sweep_json))


def verdict_of(record: SweepRecord) -> str:
    """Of the whole: passed only if every run did."""
    if not_passed(record):
        return "failed"
    if any(not point.ended for point in record.points):
        return "interrupted"
    return "passed" if all(point.verdict for point in record.points) else "not analysed"


def not_passed(record: SweepRecord) -> list[PointRecord]:
    """The runs that went wrong."""
    return [
        point
        for point in record.points
        if point.outcome == "crashed" or point.verdict not in {None, "passed"}
    ]


def runs_text(record: SweepRecord) -> str:
    """`14 passed, 1 failed; 15 in all`."""
    counts = Counter(
        point.verdict or ("not analysed" if point.ended else point.outcome or "not run")
        for point in record.points
    )
    return f"{', '.join(f'{count} {kind}' for kind, count in counts.items())}; {len(record.points)} in all"
