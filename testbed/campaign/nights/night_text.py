"""Texts about a night: the planned runs before it, and the results at its end."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from experiments.campaigns.nights import NightDirectory, NightRecord, NightRun
from experiments.suite import SuiteFile, overrides_of
from testbed.campaign.texts.campaign_text import duration_text, result_text, runs_text
from testbed.campaign.texts.outcome import COLOURS, row
from testbed.nightly.hooks import night_result
from testbed.nightly.planning import DurationEstimate, budget_left_s

if TYPE_CHECKING:
    from testbed.campaign.nights.night_options import NightOptions

SHOWN_MAX = 10


def show_planned(file: SuiteFile, record: NightRecord, expected: DurationEstimate) -> None:
    """Print what `--dry` shows: each run, its seed, and its estimated duration."""
    width = max(len(run.name) for run in record.runs)
    left_s = record.budget_s
    for run in record.runs:
        needed_s = expected.estimate_s(run, record)
        fits = needed_s <= min(left_s, budget_left_s(run, record, file))
        left_s -= needed_s if fits else 0
        estimate = f"{duration_text(needed_s):>12}" if fits else "no time left"
        click.echo(
            f"{run.name:<{width}}  {estimate:<12}  {run.backend:<9}  seed {run.seed:<10}  {run.experiment}"
        )
    total = duration_text(record.budget_s - left_s)
    count = len(record.runs)
    click.echo(f"{count} runs, about {total} of at most {duration_text(record.budget_s)}")


def show_night(
    directory: NightDirectory,
    record: NightRecord,
    file: SuiteFile,
    page: Path | None,
    options: "NightOptions",
) -> None:
    """Print the result of a night. options: those of this night."""
    verdict = night_result(record)
    colour = COLOURS["passed"] if verdict == "fine" else COLOURS["failed"]
    row("night", click.style(verdict, fg=colour, bold=True))
    row("runs", runs_text(record))
    for finding in record.findings[:SHOWN_MAX]:
        row("worse", finding)
    for finding in record.findings_allowed[:SHOWN_MAX]:
        row("worse", f"{finding} (allowed)")
    if record.unchecked is not None and record.over:
        row("unchecked", record.unchecked)
    failed = _failed_by_entry(record)
    for runs in failed[:SHOWN_MAX]:
        of = sum(run.entry == runs[0].entry for run in record.runs)
        count = f"{len(runs)} of {of}: " if of > 1 else ""
        row("failed", f"{runs[0].entry}: {count}{result_text(runs[0])}")
        row("", f"replay: {replay_command(runs[0], file)}")
    if (more := len(failed) - SHOWN_MAX) > 0:
        row("", f"and {more} more")
    if not record.over:
        words = ["cutset", "nightly", file.named, "--date", record.night, "--resume"]
        row("resume", shlex.join([*words, *options.words(absolute=False)]))
    if page is not None:
        row("page", str(page))
    row("results", str(directory.junit_xml))
    row("record", str(directory.night_json))


def replay_command(run: NightRun, file: SuiteFile) -> str:
    """Return the command that makes this run again."""
    entry = next(entry for entry in file.suite.entries if entry.name == run.entry)
    if entry.study is not None:
        settings = [f"--set {shlex.quote(setting)}" for setting in overrides_of(entry.settings)]
        return " ".join(["cutset study", entry.study, *settings, f"--seed {run.seed}"])
    read = file.experiments[run.entry]
    experiment = run.experiment if entry.experiment == run.experiment else read.document.file
    settings = overrides_of(entry.settings)
    settings += [f"{field}=null" for field in read.left_out]
    options = [f"--set {shlex.quote(setting)}" for setting in settings]
    if entry.topology is not None:
        options.append(f"--topology {shlex.quote(str(read.experiment.topology))}")
    if entry.links != "auto":
        options.append(f"--links {entry.links}")
    last = [f"--seed {run.seed}", f"--on {shlex.quote(run.backend)}"]
    return " ".join(["cutset run", shlex.quote(experiment), *options, *last])


def _failed_by_entry(record: NightRecord) -> list[list[NightRun]]:
    """Return the failed runs, grouped by entry; entries that are allowed to fail come last."""
    found: dict[str, list[NightRun]] = {}
    for run in record.runs:
        if run.failure is not None:
            found.setdefault(run.entry, []).append(run)
    return sorted(found.values(), key=lambda runs: runs[0].allow_failure)
