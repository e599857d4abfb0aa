"""What a sweep is made of and how far it is. Decides; runs nothing.

Also says whether a sweep that was interrupted may go on: only if everything that decides what runs is as it
was.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from experiments.loader import ExperimentFile
from experiments.model import Experiment
from experiments.sweep import SweepRun, runs
from experiments.sweep_expectations import Result, SweepExpectation
from experiments.sweepdir import PointRecord, SweepDirectory, SweepRecord
from topologies.errors import InputError
from topologies.loader import load_topology
from topologies.model import Topology

OF_SWEEP = "expect_sweep"


@dataclass(frozen=True, slots=True)
class RunSelection:
    """What a user asked for: an experiment as it was read, and the options that count for all its runs."""

    file: ExperimentFile
    backend: str
    links: str
    seed: int
    repeat: int

    @classmethod
    def of(
        cls, file: ExperimentFile, *, backend: str | None, links: str, seed: int | None, repeat: int | None
    ) -> "RunSelection":
        """Options that are not given are as in the file."""
        experiment = file.experiment
        return cls(
            file,
            backend or experiment.on,
            links,
            experiment.seed if seed is None else seed,
            repeat or experiment.repeat,
        )

    @property
    def runs(self) -> list[SweepRun]:
        """Every run that it makes."""
        return runs(self.file.experiment.sweep, self.repeat, self.seed)

    @property
    def is_sweep(self) -> bool:
        """Whether it makes more than one run."""
        return bool(self.file.experiment.sweep) or self.repeat > 1


class Points:
    """The experiments and topologies of a sweep's combinations, read once each."""

    def __init__(self, chosen: RunSelection) -> None:
        self._chosen = chosen
        self._made: dict[int, tuple[Experiment, Topology]] = {}

    def of(self, run: SweepRun | PointRecord) -> tuple[Experiment, Topology]:
        """Of this run's combination. Raises InputError."""
        if run.number not in self._made:
            experiment = self._chosen.file.point(run.values)
            self._made[run.number] = (experiment, load_topology(experiment.topology))
        return self._made[run.number]

    def digest(self) -> str:
        """Of everything that decides what runs."""
        chosen = self._chosen
        combinations = {run.number: run for run in chosen.runs}
        content = {
            "links": chosen.links,
            "on": chosen.backend,
            "points": [[plain(part) for part in self.of(run)] for run in combinations.values()],
            "repeat": chosen.repeat,
            "seed": chosen.seed,
        }
        return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def plain(model: Experiment | Topology) -> dict[str, Any]:
    """As plain JSON in the form of its file."""
    content: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return content


def new_record(
    directory: SweepDirectory, chosen: RunSelection, points: Points, commit: str | None
) -> SweepRecord:
    """What stands in sweep.json before anything has run."""
    return SweepRecord(
        sweep=directory.name,
        experiment=plain(chosen.file.experiment),
        place=chosen.backend,
        links=chosen.links,
        seed=chosen.seed,
        repeat=chosen.repeat,
        digest=points.digest(),
        commit=commit,
        started_ns=time.time_ns(),
        points=tuple(PointRecord.planned(run) for run in chosen.runs),
    )


def refuse_changed(
    record: SweepRecord, chosen: RunSelection, points: Points, directory: SweepDirectory
) -> None:
    """Raises InputError unless `chosen` is what this sweep began with."""
    name = chosen.file.experiment.name
    if record.digest == points.digest():
        return
    before = record.experiment.get("name")
    options = {
        "--on": (record.place, chosen.backend),
        "--links": (record.links, chosen.links),
        "--seed": (record.seed, chosen.seed),
        "--repeat": (record.repeat, chosen.repeat),
    }
    for option, (was, now) in options.items():
        if was != now:
            raise InputError(
                f"--resume {directory.path}", None, "", f"the sweep began with {option} {was}, not {now}"
            )
    what = f"{name} or its topology was changed since" if before == name else f"it is a sweep of {before}"
    raise InputError(f"--resume {directory.path}", None, "", f"cannot go on: {what}")


def continued(record: SweepRecord, chosen: RunSelection, directory: SweepDirectory) -> SweepRecord:
    """The record with the plan's runs, each with what became of it. Raises InputError if it has others."""
    known = {point.name: point for point in record.points}
    planned = [PointRecord.planned(run) for run in chosen.runs]
    if [point.name for point in planned] != list(known):
        raise InputError(f"--resume {directory.path}", None, "", "cannot go on: it lists other runs")
    fixed = ("number", "values", "repetition", "seed")
    points = [
        replace(known[point.name], **{name: getattr(point, name) for name in fixed}) for point in planned
    ]
    return replace(record, points=tuple(points))


def pending(record: SweepRecord) -> list[PointRecord]:
    """The runs that are still to be made, torn and crashed ones among them."""
    return [point for point in record.points if not point.ended]


def judged(record: SweepRecord, directory: SweepDirectory) -> SweepRecord:
    """The record with what is expected of all runs together held against what they came to.

    Only once every run was analysed: a statistic over some of them says nothing. Raises InputError if a run's
    summary cannot be read.
    """
    if not all(point.verdict for point in record.points):
        return replace(record, expectations=())
    if not (asked := [SweepExpectation.parse(text) for text in record.experiment.get(OF_SWEEP) or ()]):
        return record
    results = [Result(point.values, directory.run_of(point).read_summary()) for point in record.points]
    return replace(record, expectations=tuple(expectation.evaluate(results) for expectation in asked))


def missed(record: SweepRecord) -> list[dict[str, Any]]:
    """What was expected of all runs together and did not hold."""
    return [expectation for expectation in record.expectations if not expectation["held"]]


def all_passed(record: SweepRecord) -> bool:
    """Whether every run ended and passed, and what was expected of all together held."""
    return not missed(record) and all(point.ended and point.verdict == "passed" for point in record.points)


def headline(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a run that stand in its line and in sweep.json."""
    throughput, latency, events = (summary.get(key) or {} for key in ("throughput", "latency", "events"))
    slowest = throughput.get("slowest_client_events_per_s")
    return {
        "events_per_s": throughput.get("events_per_s") if slowest is None else slowest,
        "latency_p99_ms": latency.get("p99_ms"),
        "lost": events.get("lost"),
    }
