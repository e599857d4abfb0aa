"""The summary of a sweep on standard output: how many runs passed, and how to replay the others."""

import shlex
from collections.abc import Iterator, Sequence

import click

from experiments.campaigns.campaign import RunState
from experiments.campaigns.sweep_expectations import SweepJudgement
from experiments.campaigns.sweepdir import SweepDirectory, SweepRecord, SweepRun, replay_command
from testbed.campaign.texts.campaign_text import runs_text, title
from testbed.campaign.texts.outcome import COLOURS, held_text, row

SHOWN_MAX = 10  # of the runs that did not pass


def show_sweep(directory: SweepDirectory, record: SweepRecord, given: tuple[str, Sequence[str]]) -> None:
    """Print the result. given: the experiment as the user named it, and the overrides."""
    verdict = verdict_of(record)
    row("verdict", click.style(verdict, fg=COLOURS.get(verdict), bold=True))
    row("runs", runs_text(record))
    for expectation in record.expectations:
        for text in expectation_lines(expectation):
            row("expected", text)
    for run in not_passed(record)[:SHOWN_MAX]:
        row(run.verdict or "crashed", ": ".join(filter(None, [title(run), run.problem])))
        row("", f"replay: {replay_command(*given, run, record.backend)}")
    if (more := len(not_passed(record)) - SHOWN_MAX) > 0:
        row("", f"and {more} more")
    if not record.complete:
        name, overrides = given
        words = ["cutset", "run", name, *(word for override in overrides for word in ("--set", override))]
        words += ["--seed", str(record.seed), "--repeat", str(record.repeat), "--on", record.backend]
        words += ["--links", record.links, "--resume", str(directory.path)]
        row("resume", shlex.join(words))
    if directory.report_html.exists():
        row("report", str(directory.report_html))
    if directory.systems_html.exists():
        row("systems", str(directory.systems_html))
    row("sweep", str(directory.sweep_json))


def verdict_of(record: SweepRecord) -> str:
    """Return the verdict of a sweep: passed only if all runs passed and the sweep's expectations held."""
    if not_passed(record) or record.missed:
        return "failed"
    if not record.complete:
        return "interrupted"
    return "passed" if all(run.verdict for run in record.made) else "not analysed"


def expectation_lines(expectation: SweepJudgement) -> Iterator[str]:
    """Yield an expectation on all runs together, and each group of runs in which it did not hold."""
    groups = [group for group in expectation.groups if not group.held]
    yield f"{expectation.text}: {held_text(expectation.value, held=expectation.held)}"
    for group in groups[:SHOWN_MAX]:
        yield f"  {group.of}: {held_text(group.value, held=group.held)}"
    if (more := len(groups) - SHOWN_MAX) > 0:
        yield f"  and {more} more"


def not_passed(record: SweepRecord) -> list[SweepRun]:
    """Return the runs that failed or did not pass."""
    return [run for run in record.runs if run.state is RunState.FAILED or run.verdict not in {None, "passed"}]
