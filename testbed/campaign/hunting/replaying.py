"""Replays of a finding: how often it breaks.

Real processes are not deterministic. So the result is a rate with its interval. All runs are counted by
backend in the finding's `replays.json`, to which later replays add.
"""

from pathlib import Path
from typing import Any

import click

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

RUNS = "replays"
CRASHED, SILENT = "crashed", "silent"


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


def _one(folder: Path, finding: dict[str, Any], backend_name: str) -> bool:
    """Run a finding's experiment once; return whether it broke as it did when it was found."""
    waiting = folder / WHEN
    file = waiting if backend_name == LOCAL and waiting.is_file() else folder / EXPERIMENT
    experiment = load_experiment(str(file))
    request = ExperimentRunRequest.for_experiment(experiment, experiment.seed)
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
