"""The record of a campaign: the runs of a sweep or of a night.

The record holds each run's name, repetition, seed, state and result. `sweepdir` and `nights` add the fields
of their kind and the place on disk. Reading a record checks types, ranges, names (no path may leave the
folder) and that run names are unique. A file has one writer; after a crash it holds either the old content or
the new.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import ConfigDict, Field

from experiments.records.json_files import write_json
from experiments.records.run_record import Outcome
from experiments.records.validated_json import STRICT, Count, Name, Seed, Text, TimeNs, from_json, to_json
from topologies.errors import InputError

SCHEMA = 2
CampaignVerdict = Literal["passed", "failed", "invalid", "crashed"]
"""Verdicts in summary.json."""
DurationS = Annotated[float, Field(ge=0)]


class RunState(StrEnum):
    """The state of a run within its campaign."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"  # it completed
    FAILED = "failed"  # it broke off, or could not be started: see its problem
    SKIPPED = "skipped"  # the campaign's time ran out first


class FailureKind(StrEnum):
    """The category of a failure."""

    EXPECTATION = "expectation"  # the run is sound, but an expectation did not hold
    FIDELITY = "fidelity"  # the emulation was not faithful, so the results are not valid
    CRASH = "crash"  # the run or one of its nodes crashed
    HARNESS = "harness"  # it could not start, or the analysis failed: a fault of the machine or the testbed


@dataclass(frozen=True, slots=True)
class RunHeadline:
    """The headline figures of a run, for the slowest client; None if not measured."""

    events_per_s: float | None = None
    latency_p99_ms: float | None = None
    lost: Count | None = None

    @classmethod
    def from_summary(cls, summary: Mapping[str, Any]) -> Self:
        """Read the figures from a summary.json; without a slowest client, take the mean over clients."""
        throughput, latency, events = (summary.get(key) or {} for key in ("throughput", "latency", "events"))
        slowest = throughput.get("slowest_client_events_per_s")
        return cls(
            throughput.get("events_per_s") if slowest is None else slowest,
            latency.get("p99_ms"),
            events.get("lost"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRun:
    """One run of a campaign and its result.

    name: unique in the campaign. repetition: from 0. run: its directory, below the campaign's folder of runs.
    started_ns: time of the last attempt. duration_s: wall clock, analysis included. allow_failure: whether
    the campaign passes even if this run fails. problem: one line that says why it did not pass or did not
    run.
    """

    PROGRESS: ClassVar[tuple[str, ...]] = (
        *("state", "run", "started_ns", "duration_s"),
        *("verdict", "failure", "problem", "headline"),
    )

    name: Name
    repetition: Count = 0
    seed: Seed
    state: RunState = RunState.PENDING
    run: Text | None = None
    started_ns: TimeNs | None = None
    duration_s: DurationS | None = None
    verdict: CampaignVerdict | None = None
    failure: FailureKind | None = None
    allow_failure: bool = False
    problem: Text | None = None
    headline: RunHeadline = RunHeadline()

    def resumed_from(self, known: Self) -> Self:
        """Return this planned run with its recorded progress. known: the recorded run."""
        return replace(self, **{name: getattr(known, name) for name in self.PROGRESS})

    @property
    def ended(self) -> bool:
        """Whether the run needs no further work."""
        return self.state not in {RunState.PENDING, RunState.RUNNING}

    @property
    def label(self) -> str:
        """The name shown to users."""
        return self.name


Run = TypeVar("Run", bound=CampaignRun)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRecord(Generic[Run]):
    """The record of all runs. digest: of all inputs that decide what runs. outcome: None if the campaign is
    running or was interrupted.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Annotated[int, Field(ge=SCHEMA, le=SCHEMA)] = SCHEMA
    digest: Text
    commit: Text | None
    started_ns: TimeNs
    ended_ns: TimeNs | None = None
    outcome: Outcome | None = None
    runs: tuple[Run, ...]

    @property
    def pending(self) -> list[Run]:
        """The runs that have not ended, in order."""
        return [run for run in self.runs if not run.ended]

    @property
    def ended(self) -> int:
        """The number of runs that have ended."""
        return sum(run.ended for run in self.runs)

    @property
    def failing(self) -> list[Run]:
        """The runs that fail the campaign, in order."""
        return [run for run in self.runs if run.failure is not None and not run.allow_failure]

    def named(self, name: str) -> Run:
        """Return the run of that name."""
        return next(run for run in self.runs if run.name == name)

    def resumed_from(self, planned: Sequence[Run], where: str) -> Self:
        """Return the record with these planned runs, each with the progress recorded so far.

        where: the file that the error names. Raises InputError if the record lists other runs.
        """
        if [run.name for run in planned] != [run.name for run in self.runs]:
            raise InputError(where, None, "", "cannot continue: it lists other runs")
        return replace(self, runs=tuple(map(CampaignRun.resumed_from, planned, self.runs)))

    def with_run(self, run: Run) -> Self:
        """Return the record with the new state of this run."""
        return replace(self, runs=tuple(run if old.name == run.name else old for old in self.runs))


Record = TypeVar("Record", bound=CampaignRecord[Any])


def record_from_json(kind: type[Record], content: Any, file: Path) -> Record:
    """Return the record that `write_campaign` wrote to `file`. Raises InputError with the field."""
    record = from_json(kind, content, file)
    names = Counter(run.name for run in record.runs)
    for number, run in enumerate(record.runs):
        if names[run.name] > 1:
            raise InputError(str(file), None, f"runs.{number}.name", f"several runs are called {run.name}")
    return record


def write_campaign(path: Path, record: CampaignRecord[Any]) -> None:
    """Write a record atomically. Raises OSError."""
    write_json(path, to_json(record))
