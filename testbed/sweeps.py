"""The runs and the record of a sweep. Runs nothing.

Also decides whether an interrupted sweep may continue: only if everything that determines its runs is
unchanged.
"""

import hashlib
import json
import time
from dataclasses import replace
from typing import Any

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
        self.chosen = chosen
        self._made: dict[int, tuple[Experiment, Topology]] = {}

    def inputs_of(self, run: SweepRun) -> tuple[Experiment, Topology]:
        """Return the experiment and topology of this run's combination. Raises InputError."""
        if run.number not in self._made:
            experiment = self.chosen.file.point(run.values)
            self._made[run.number] = (experiment, load_topology(experiment.topology))
        return self._made[run.number]

    def digest(self) -> str:
        """Return a digest of everything that determines what runs."""
        chosen = self.chosen
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


def new_record(directory: SweepDirectory, points: Points, commit: str | None) -> SweepRecord:
    """Return the content of sweep.json before any run."""
    chosen = points.chosen
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


def record_to_resume(record: SweepRecord, points: Points, directory: SweepDirectory) -> SweepRecord:
    """Return the record to resume, in which runs that were not completed are pending again.

    All options that determine what runs and where are those of `points`, whatever the record says. Raises
    InputError if the sweep began with others, or the record has other runs.
    """
    where = f"--resume {directory.path}"
    now = new_record(directory, points, record.commit)
    if record.digest != now.digest:
        raise InputError(where, None, "", _difference(record, now))
    runs = record.runs_to_resume(now.runs, where)
    return replace(now, started_ns=record.started_ns, expectations=record.expectations, runs=runs)


def _difference(record: SweepRecord, now: SweepRecord) -> str:
    """Return the difference that keeps a sweep from continuing."""
    for option in ("backend", "links", "seed", "repeat"):
        was, given = getattr(record, option), getattr(now, option)
        if was != given:
            return f"the sweep began with --{'on' if option == 'backend' else option} {was}, not {given}"
    if now.experiment == record.experiment and _points(now) != _points(record):
        return (
            "the sweep lists its variants or values in another order than when it began: restore that order"
        )
    before, name = record.experiment.get("name"), now.experiment["name"]
    what = f"{name} or its topology has changed" if before == name else f"it is a sweep of {before}"
    return f"cannot continue: {what}"


def _points(record: SweepRecord) -> list[dict[str, Any]]:
    return [run.values for run in record.runs]


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
