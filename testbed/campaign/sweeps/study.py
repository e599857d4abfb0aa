"""Execution of studies and sweeps as one list of jobs, and their pages."""

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from analysis.errors import AnalysisError
from analysis.jobs.cluster import Cluster
from analysis.pages.study.results import StudyResults
from analysis.pages.study.results_pages import (
    PAGES,
    MeasuredPoint,
    measured_study,
    measured_sweep,
    publish,
    write_paper_pages,
)
from analysis.pages.study.study_page import as_text, content_of, write_study_report
from experiments.campaigns.studies import StudyPlan, check_study
from experiments.campaigns.studydir import RECORD, StudyDirectory, StudyRecord
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.loader import ExperimentFile
from experiments.records.run_record import Outcome
from testbed.backends.studies import execute, execute_seed, side_by_side
from testbed.campaign import exit_codes
from testbed.campaign.in_use import sole_writer
from testbed.campaign.jobs.pool import Job, JobPool
from testbed.campaign.jobs.serving import serve
from testbed.campaign.sweeps.sweep_outcome import verdict_of
from testbed.campaign.sweeps.sweep_run import continue_sweep, new_sweep
from testbed.campaign.texts.progress import follower
from testbed.errors import MachineError
from testbed.run_selection import RunSelection
from testbed.runner.versions import commit
from topologies.errors import InputError

SWEEP = SweepDirectory.RECORD
POLL_S = 1.0
TOLD_EVERY_S = 60.0


def new_study(plan: StudyPlan, seeds: Sequence[int], out: Path) -> Path:
    """Create a study below `out` that `resume_study` runs."""
    with _writing(out):
        directory = StudyDirectory.create(out, plan[1], datetime.now(UTC), secrets.token_hex(3))
        directory.write(_record(plan, seeds))
    return directory.path


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Raise MachineError, which names the folder, if it cannot be written."""
    try:
        yield
    except OSError as error:
        raise MachineError(f"cannot write below {folder}: {error.strerror}") from error


def run_studies(
    plans: Sequence[StudyPlan], files: Sequence[ExperimentFile], seeds: Sequence[int], out: Path
) -> Path:
    """Create a folder of studies and sweeps below `out` that `resume_study` runs as one list of jobs.

    files: the experiments of the sweeps. Raises InputError if one of them has an invalid combination.
    """
    folder = out / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-studies-{secrets.token_hex(3)}"
    unfinished = folder.with_suffix(".new")  # so that the folder has all studies, or does not exist
    with _writing(out):
        for number, plan in enumerate(plans, 1):
            directory = StudyDirectory(unfinished / f"{number:02}-{plan[1]}")
            directory.path.mkdir(parents=True)
            directory.write(_record(plan, seeds))
        for number, file in enumerate(files, len(plans) + 1):
            sweep = SweepDirectory(unfinished / f"{number:02}-{file.experiment.name}")
            sweep.make()
            new_sweep(sweep, RunSelection(file, file.experiment.on, "auto", seeds[0], file.experiment.repeat))
        unfinished.rename(folder)
    return folder


def _record(plan: StudyPlan, seeds: Sequence[int]) -> StudyRecord:
    system, study, parameters = plan
    return StudyRecord(system, study, parameters, tuple(seeds), commit() or "")


def resume_study(path: Path, *, is_published: bool = False, master: str | None = None) -> int:
    """Run what is not done of a study or sweep, or of all in a folder, and write the pages.

    is_published: also put the numbers into docs/results/. master: a Spark master whose executors run the
    seeds of studies. Return the exit code. Raises InputError if there is no study, MachineError if another
    command makes it or docs/results/ cannot be written, AnalysisError if the executors cannot do the work.
    """
    if is_published and not os.access(PAGES, os.W_OK):
        raise MachineError(f"cannot write the tables below {PAGES} (--publish)")
    listed = [each.parent for each in sorted(path.glob("*/*.json")) if each.name in {RECORD, SWEEP}]
    is_list = bool(listed)
    if not is_list and (path / SWEEP).exists():  # a sweep excludes other commands itself
        return _resume(
            path, [], [SweepDirectory(path)], [], is_list=False, is_published=is_published, master=master
        )
    with sole_writer(path):
        directories, sweeps = list[StudyDirectory](), list[SweepDirectory]()
        problems = [
            f"{each}: has neither {RECORD} nor {SWEEP}; restore it, or remove this part of the list"
            for each in sorted(path.glob("[0-9][0-9]-*/"))
            if is_list and each not in listed
        ]
        for each in listed or [path]:
            try:
                if (each / SWEEP).exists():
                    sweep = SweepDirectory(each)
                    sweep.read()
                    sweeps.append(sweep)
                else:
                    study = StudyDirectory(each)
                    check_study(study.read(), study.path / RECORD)
                    directories.append(study)
            except InputError as error:
                if not is_list:
                    raise
                problems.append(str(error))
        return _resume(
            path, directories, sweeps, problems, is_list=is_list, is_published=is_published, master=master
        )


def _resume(
    path: Path,
    directories: Sequence[StudyDirectory],
    sweeps: Sequence[SweepDirectory],
    problems: list[str],
    *,
    is_list: bool,
    is_published: bool,
    master: str | None,
) -> int:
    """Run what is not done of these studies and sweeps, show all problems, and write the pages."""
    records = [directory.read() for directory in directories]
    jobs = [
        _job(directory, record, seed)
        for directory, record in zip(directories, records, strict=True)
        for seed in record.seeds
        if seed not in directory.done(record.seeds)
    ]
    try:
        if master is not None and not master.startswith("local") and jobs:
            problems += _on_cluster(jobs, path, master)
        elif len(jobs) > 1 and (is_list or _at_once(jobs[0]) > 1):
            for at_once, group in groupby(sorted(jobs, key=_at_once, reverse=True), _at_once):
                problems += _side_by_side(list(group), at_once)
        else:
            with _progress() as report:
                for job in jobs:
                    execute(StudyDirectory(Path(job.request["study"])), job.request["seed"], report)
        problems += filter(None, map(_sweep, sweeps))
    finally:  # after Ctrl-C, too, for the seeds that are done
        for problem in problems:
            click.echo(f"problem: {problem}", err=True)
        problems += _write_pages(path, directories, sweeps, is_list=is_list, is_published=is_published)
    return exit_codes.FAILED if problems else exit_codes.FINE


def _at_once(job: Job) -> int:
    """Return how many jobs of this size this machine can run at once."""
    sizes = StudyDirectory(Path(job.request["study"])).read().parameters
    return side_by_side(*(int(sizes.get(name, 0)) for name in ("nodes", "peers", "subscriptions")))


def _job(directory: StudyDirectory, record: StudyRecord, seed: int) -> Job:
    name = f"seed {seed} of {directory.path.name}"
    return Job(name, {"study": str(directory.path.absolute()), "seed": seed})


def _sweep(directory: SweepDirectory) -> str | None:
    """Make the runs of a sweep that are not done; return its problem. Raises KeyboardInterrupt."""
    record = directory.read()
    if not record.complete:
        try:
            record, outcome = continue_sweep(directory)
        except (MachineError, AnalysisError) as error:
            return f"{directory.name}: {error}"
        if outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt
    verdict = verdict_of(record)
    return None if verdict == "passed" else f"{directory.name} {verdict}: see {directory.report_html}"


def _write_pages(
    path: Path,
    directories: Sequence[StudyDirectory],
    sweeps: Sequence[SweepDirectory],
    *,
    is_list: bool,
    is_published: bool,
) -> list[str]:
    """Write the pages; say which parts of a list cannot be read, and return these problems."""
    done = [directory for directory in directories if directory.done(directory.read().seeds)]
    swept = [sweep for sweep in sweeps if any(run.verdict for run in sweep.read().runs)]
    pages, problems = list[Path](), list[str]()
    points: dict[str, list[tuple[str, MeasuredPoint]]] = {}
    for directory in done:
        try:
            pages.append(write_study_report(directory))
            measured = measured_study(directory)
        except InputError as error:
            if not is_list:
                raise
            problems.append(str(error))
            click.echo(f"problem: {error}", err=True)
            continue
        points.setdefault(directory.read().system, []).append((directory.name, measured))
    for sweep in swept:
        points.setdefault(str(sweep.read().experiment["system"]), []).append(
            (sweep.name, measured_sweep(sweep))
        )
    if not points and not problems:
        click.echo(f"No seed is done yet; continue with: cutset study --resume {path}", err=True)
    elif is_list:
        pages = write_paper_pages(path, points)
    elif done:
        click.echo(as_text(content_of(StudyResults.from_directory(done[0]))))
    if is_published:
        with _writing(PAGES):
            pages += publish({system: [point for _, point in found] for system, found in points.items()})
    for page in pages:
        click.echo(f"\n{page}")
    return problems


def _side_by_side(jobs: Sequence[Job], at_once: int) -> list[str]:
    """Execute all jobs; return the problems of those that failed."""
    click.echo(f"{len(jobs)} seeds, {at_once} at a time", err=True)
    problems = []
    with JobPool("testbed.campaign.sweeps.study", {}, at_once, one_job_each=True) as pool:
        for number, result in enumerate(pool.results(jobs), 1):
            problem = result.problem or (result.answer or {}).get("problem")
            if problem:
                problems.append(f"{result.subject} failed: {problem}")
            state = "failed" if problem else "is done"
            click.echo(f"{result.subject} {state} ({number} of {len(jobs)}, {result.took_s:.0f} s)", err=True)
    return problems


def _on_cluster(jobs: Sequence[Job], folder: Path, master: str) -> list[str]:
    """Execute all jobs on the executors of a Spark cluster; return the problems of those that failed."""
    seeds = [(Path(job.request["study"]), int(job.request["seed"])) for job in jobs]

    def report() -> None:
        left = dict(zip(seeds, jobs, strict=True))
        while left and not over.wait(POLL_S):
            for study, seed in [each for each in left if StudyDirectory(each[0]).done([each[1]])]:
                subject = left.pop((study, seed)).subject
                click.echo(f"{subject} is done ({len(jobs) - len(left)} of {len(jobs)})", err=True)

    over = threading.Event()
    reporting = threading.Thread(target=report, daemon=True)
    reporting.start()
    try:
        with Cluster(master) as cluster:
            problems = cluster.each(execute_seed, seeds, folder.absolute(), partial(click.echo, err=True))
    finally:
        over.set()
        reporting.join()
    return [
        f"{job.subject} failed: {problem}" for job, problem in zip(jobs, problems, strict=True) if problem
    ]


def _execute(request: dict[str, Any]) -> dict[str, Any]:
    """Run a seed in a worker, beside others, and show its progress once in `TOLD_EVERY_S`."""
    study, told_s = Path(request["study"]), time.monotonic()

    def report(seed: int, doing: str, done: float) -> None:
        nonlocal told_s
        if time.monotonic() - told_s >= TOLD_EVERY_S:
            told_s = time.monotonic()
            click.echo(f"seed {seed} of {study.name}: {doing}, {done:.0%}", err=True)

    return {"problem": execute_seed((study, request["seed"]), report)}


@contextmanager
def _progress() -> Iterator[Callable[[int, str, float], None]]:
    """Show the progress of a seed on standard error, in tenths of each step."""
    shown: dict[int, tuple[str, int]] = {}
    with follower() as follow:

        def report(seed: int, doing: str, done: float) -> None:
            step = doing, int(done * 10)
            if shown.get(seed) != step:
                shown[seed] = step
                follow.say(f"seed {seed}: {doing}, {done:.0%}")

        yield report


if __name__ == "__main__":
    serve(lambda setup: _execute)
