"""Replays of a finding: how often it breaks, or whether it is fixed.

Real processes are not deterministic. So the result is a rate with its interval and, for a fix, the number of
successive clean runs that make it credible that a violation with such a rate is gone. All runs are counted by
backend in the finding's `replays.json`, to which later replays add.
"""

import math
from pathlib import Path
from typing import Any

import click

from analysis.intervals import clean_runs_needed, wilson_interval
from experiments.backend_names import LOCAL
from experiments.expectations import Expectation
from experiments.loader import load_experiment
from testbed.campaign import exit_codes
from testbed.campaign.backend_selection import open_backend
from testbed.campaign.hunting.counts import ReplayCounts, read_counts, write_counts
from testbed.campaign.hunting.finding import EXPERIMENT, WHEN, read_finding
from testbed.campaign.hunting.on_processes import judge_files
from testbed.campaign.one_run import ExperimentRunRequest, make, prepare
from testbed.campaign.texts.progress import follower
from testbed.errors import MachineError, TestbedError
from topologies.errors import InputError
from topologies.loader import load_topology

RUNS = "replays"
CRASHED, SILENT = "crashed", "silent"
CLEAN_MAX = 1_000
"""The maximum number of successive clean runs that are made to show a fix."""


def replay(folder: Path, times: int, backend: str) -> int:
    """Replay a finding `times` times, print how often it broke, and return the exit code: 1 if it ever did.

    Raises InputError.
    """
    finding = read_finding(folder)
    counted = read_counts(folder).get(backend, ReplayCounts())
    again = 0
    click.echo(finding["said"], err=True)
    for number in range(1, times + 1):
        broke = _one(folder, finding, backend)
        again += broke
        counted = counted.with_one(broke=broke)
        write_counts(folder, {**read_counts(folder), backend: counted})
        click.echo(f"run {number} of {times}: {'broke' if broke else 'held'}", err=True)
    click.echo(counted.text)
    return exit_codes.FAILED if again else exit_codes.FINE


def fixed(folder: Path, backend: str) -> int:
    """Replay a finding until it breaks, or until enough runs held to call it fixed; return the exit code.

    Raises InputError if it never broke on this backend, because its rate is then unknown.
    """
    finding = read_finding(folder)
    counted = read_counts(folder).get(backend, ReplayCounts())
    needed = clean_needed(counted, folder, backend)
    click.echo(f"{finding['said']}\n{counted.text}: {needed} clean runs in a row are needed", err=True)
    for number in range(1, needed + 1):
        if _one(folder, finding, backend):
            click.echo(f"not fixed: broke in run {number}")
            return exit_codes.FAILED
        click.echo(f"run {number} of {needed}: held", err=True)
    low = _low(counted)
    click.echo(
        f"fixed, judging by {needed} clean runs: if it still broke at a rate of {low:.0%} or more,"
        " their probability would be at most 5 %"
    )
    return exit_codes.FINE


def clean_needed(counted: ReplayCounts, folder: Path, backend: str) -> int:
    """Return how many clean runs show a fix. Raises InputError if it never broke, or too seldom."""
    if not counted.broke:
        problem = (
            f"never broke on {backend}: first replay it there without the fix, to measure how often it breaks"
        )
        raise InputError(str(folder), None, "", problem)
    needed = clean_runs_needed(_low(counted))
    if needed > CLEAN_MAX:
        problem = f"breaks too seldom, or was replayed too little: {needed} clean runs would be needed"
        raise InputError(str(folder), None, "", problem)
    return needed


def _low(counted: ReplayCounts) -> float:
    """Return the lower limit of its rate, because the number of clean runs depends on it."""
    return max(wilson_interval(counted.broke, counted.runs)[0], math.ulp(1.0))


def _one(folder: Path, finding: dict[str, Any], backend_name: str) -> bool:
    """Run a finding's experiment once; return whether it broke as it did when it was found."""
    waiting = folder / WHEN
    file = waiting if backend_name == LOCAL and waiting.is_file() else folder / EXPERIMENT
    experiment = load_experiment(str(file))
    topology = load_topology(experiment.topology)
    request = ExperimentRunRequest(experiment, topology, experiment.seed, "auto")
    with open_backend(backend_name, _say) as backend, follower("replay") as follow:
        run = prepare(request, backend, folder / RUNS)
        try:
            made = make(run, backend, follow)
        except TestbedError as error:
            if finding["violation"]["kind"] != CRASHED or isinstance(error, MachineError):
                raise
            _say(f"crashed: {error}")
            return True
    record, kind = made.run_record, finding["violation"]["kind"]
    if kind == SILENT:  # the summary has no figure for it
        return any(each.kind == kind for each in judge_files(run, record).violations)
    drained = record.times.drained_ns is not None
    return made.summary is not None and broke_again(finding["violation"], made.summary, drained=drained)


def _say(text: str) -> None:
    click.echo(text, err=True)


def broke_again(violation: dict[str, Any], summary: dict[str, Any], *, drained: bool) -> bool:
    """Return whether a run has the finding's violation. drained: whether all events had arrived."""
    kind = violation["kind"]
    if kind == "stalled":
        return not drained
    if kind in summary["events"] or kind == "unconfirmed":
        missed = [str(each["text"]) for each in summary["expectations"] if not each["held"]]
        return any(Expectation.parse(text).path.endswith(f".{kind}") for text in missed)
    return summary["verdict"] in {"failed", "crashed"}
