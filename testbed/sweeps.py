"""The runs and the record of a sweep. Runs nothing.

Also decides whether an interrupted sweep may continue: only if everything that determines its runs is
unchanged.
"""

import hashlib
import json
import time
from dataclasses import replace
from typing import Any

from experiments.campaigns.campaign import RunState
from experiments.campaigns.sweep_expectations import Result, SweepExpectation
from experiments.campaigns.sweepdir import SweepDirectory, SweepRecord, SweepRun, runs
from experiments.model import Experiment
from testbed.run_selection import RunSelection
from topologies.errors import InputError
from topologies.loader import load_topology
from topologies.model import Topology

OF_SWEEP = "expect_sweep"


def runs_of(chosen: RunSelection) -> list[SweepRun]:
    """Return every run of the sweep."""
    return runs(chosen.file.experiment.axes, chosen.repeat, chosen.seed)


class Points:
    """The experiment and topology of each combination of a sweep, read once each."""

    def __init__(self, chosen: RunSelection) -> None:
        self._chosen = chosen
        self._made: dict[int, tuple[Experiment, Topology]] = {}

    def inputs_of(self, run: SweepRun) -> tuple[Experiment, Topology]:
        """Return the experiment and topology of this run's combination. Raises InputError."""
        if run.number not in self._made:
            experiment = self._chosen.file.point(run.values)
            self._made[run.number] = (experiment, load_topology(experiment.topology))
        return self._made[run.number]

    def digest(self) -> str:
        """Return a digest of everything that determines what runs."""
        chosen = self._chosen
        combinations = {run.number: run for run in runs_of(chosen)}
        content = {
            "links": chosen.links,
            "on": chosen.backend,
            "points": [[plain(part) for part in self.inputs_of(run)] for run in combinations.values()],
            "repeat": chosen.repeat,
            "seed": chosen.seed,
        }
        return digest_of(content)


def plain(model: Experiment | Topology) -> dict[str, Any]:
    """Return the model as plain JSON in the form of its file."""
    content: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return content


def digest_of(content: Any) -> str:
    """Return a digest of plain JSON."""
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def new_record(
    directory: SweepDirectory, chosen: RunSelection, points: Points, commit: str | None
) -> SweepRecord:
    """Return the content of sweep.json before any run."""
    return SweepRecord(
        sweep=directory.name,
        experiment=plain(chosen.file.experiment),
        backend=chosen.backend,
        links=chosen.links,
        seed=chosen.seed,
        repeat=chosen.repeat,
        digest=points.digest(),
        commit=commit,
        started_ns=time.time_ns(),
        runs=tuple(runs_of(chosen)),
    )


def refuse_changed(
    record: SweepRecord, chosen: RunSelection, points: Points, directory: SweepDirectory
) -> None:
    """Raise InputError unless `chosen` is what this sweep began with."""
    name = chosen.file.experiment.name
    if record.digest == points.digest():
        return
    before = record.experiment.get("name")
    options = {
        "--on": (record.backend, chosen.backend),
        "--links": (record.links, chosen.links),
        "--seed": (record.seed, chosen.seed),
        "--repeat": (record.repeat, chosen.repeat),
    }
    for option, (was, now) in options.items():
        if was != now:
            raise InputError(
                f"--resume {directory.path}", None, "", f"the sweep began with {option} {was}, not {now}"
            )
    what = f"{name} or its topology has changed" if before == name else f"it is a sweep of {before}"
    raise InputError(f"--resume {directory.path}", None, "", f"cannot go on: {what}")


def record_to_resume(record: SweepRecord, chosen: RunSelection, directory: SweepDirectory) -> SweepRecord:
    """Return the record to resume: completed runs keep their results, all others are to be made.

    Damaged and crashed runs are made again. All options that determine what runs and where are those of
    `chosen`, whatever the record says. Raises InputError if the record has other runs.
    """
    record = record.going_on(runs_of(chosen), f"--resume {directory.path}")
    again = (
        planned if run.state is not RunState.DONE else run
        for planned, run in zip(runs_of(chosen), record.runs, strict=True)
    )
    return replace(
        record,
        experiment=plain(chosen.file.experiment),
        backend=chosen.backend,
        links=chosen.links,
        seed=chosen.seed,
        repeat=chosen.repeat,
        runs=tuple(again),
    )


def with_expectations_judged(record: SweepRecord, directory: SweepDirectory) -> SweepRecord:
    """Return the record with the sweep's expectations evaluated.

    Expectations are evaluated only when every run is analysed, because a statistic over some runs is
    meaningless. Raises InputError if a run's summary cannot be read.
    """
    if not all(run.verdict for run in record.made):
        return replace(record, expectations=())
    if not (asked := [SweepExpectation.parse(text) for text in record.experiment.get(OF_SWEEP) or ()]):
        return record
    results = [Result(run.values, directory.run_of(run).read_summary()) for run in record.made]
    return replace(record, expectations=tuple(expectation.evaluate(results) for expectation in asked))
