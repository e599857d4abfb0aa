"""Execution of a study: its seeds one after another, or several at once, and its page."""

import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from analysis.errors import AnalysisError
from analysis.pages.study.results import StudyResults
from analysis.pages.study.study_page import as_text, content_of, write_study_report
from experiments.campaigns.studydir import StudyDirectory, StudyRecord
from testbed.backends.studies import execute, side_by_side
from testbed.campaign import exit_codes
from testbed.campaign.jobs.pool import Job, LocalPool
from testbed.campaign.jobs.serving import serve
from testbed.campaign.printable_streams import unfiltered


def run_study(system: str, study: str, parameters: Mapping[str, Any], seeds: Sequence[int], out: Path) -> int:
    """Create a study below `out` and run it; return the exit code."""
    directory = StudyDirectory.create(out, study, datetime.now(UTC), secrets.token_hex(3))
    directory.write(StudyRecord(system, study, dict(parameters), tuple(seeds)))
    return go_on(directory)


def go_on(directory: StudyDirectory) -> int:
    """Run the seeds of a study that are not done yet, and write its page; return the exit code."""
    record = directory.read()
    done = directory.done(record.seeds)
    open_seeds = [seed for seed in record.seeds if seed not in done]
    at_once = side_by_side(int(record.parameters.get("nodes", 0)))
    try:
        if len(open_seeds) > 1 and at_once > 1:
            _side_by_side(directory, open_seeds, at_once)
        else:
            with _progress() as report:
                for seed in open_seeds:
                    execute(directory, seed, report)
    finally:  # after Ctrl-C, too, for the seeds that are done
        if directory.done(record.seeds):
            page = write_study_report(directory)
            click.echo(as_text(content_of(StudyResults.from_directory(directory))))
            click.echo(f"\n{page}")
        else:
            click.echo(
                f"No seed is done yet; continue with: cutset study --resume {directory.path}", err=True
            )
    return exit_codes.FINE


def _side_by_side(directory: StudyDirectory, seeds: Sequence[int], at_once: int) -> None:
    click.echo(f"{len(seeds)} seeds, {at_once} at a time", err=True)
    jobs = [Job(seed, {"study": str(directory.path.absolute()), "seed": seed}) for seed in seeds]
    with LocalPool("testbed.campaign.sweeps.study", {}, at_once) as pool:
        for number, result in enumerate(pool.results(jobs), 1):
            if problem := result.problem or (result.answer or {}).get("problem"):
                raise AnalysisError(f"seed {result.subject} of the study failed: {problem}")
            click.echo(f"seed {result.subject} is done ({number} of {len(seeds)})", err=True)


def _execute(request: dict[str, Any]) -> dict[str, Any]:
    """Run a seed in a worker. Never raises: the answer has an error as `problem`."""
    try:
        execute(StudyDirectory(Path(request["study"])), request["seed"], lambda *_: None)
    except Exception as error:  # noqa: BLE001 - the command reports it
        return {"problem": f"{type(error).__name__}: {error}"}
    return {"problem": None}


@contextmanager
def _progress() -> Iterator[Any]:
    """Show the progress of a seed on standard error: a bar on a terminal, occasional lines elsewhere."""
    console = Console(file=unfiltered(sys.stderr))
    if not console.is_terminal:
        tenths: dict[int, int] = {}

        def report(seed: int, doing: str, done: float) -> None:
            if tenths.get(seed) != int(done * 10):
                tenths[seed] = int(done * 10)
                click.echo(f"seed {seed}: {doing}, {done:.0%}", err=True)

        yield report
        return
    columns = (
        TextColumn("seed {task.fields[seed]}"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        tasks: dict[int, Any] = {}

        def show(seed: int, doing: str, done: float) -> None:
            if seed not in tasks:
                tasks[seed] = bar.add_task(doing, total=1.0, seed=seed)
            bar.update(tasks[seed], completed=done, description=doing)

        yield show


if __name__ == "__main__":
    serve(lambda setup: _execute)
