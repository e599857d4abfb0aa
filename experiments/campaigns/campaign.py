"""The record of a campaign: runs made together, in a sweep or in a night.

Says of each run what it repeats, its seed, how far it is and what came of it. `sweepdir` and `nights` add
only what theirs are made from, and where they stand on disk. A record is checked when it is read: types,
ranges, names that lead nowhere else, and that no two runs have one name. A file has one writer, and a crash
at any moment leaves the old content or the new.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import ConfigDict, Field

from experiments.files.sanitize import sanitize
from experiments.records.json_files import write_json
from experiments.records.run_record import Outcome
from experiments.records.validated_json import STRICT, Count, Name, Seed, Text, TimeNs, from_json, to_json
from topologies.errors import InputError

SCHEMA = 2
Verdict = Literal["passed", "failed", "invalid", "crashed"]
"""summary.json's."""
DurationS = Annotated[float, Field(ge=0)]


class State(StrEnum):
    """How far a run is."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"  # it came to its end
    FAILED = "failed"  # it broke, or could not be made: see its problem
    SKIPPED = "skipped"  # there was no time left for it


class Failure(StrEnum):
    """What kind of thing went wrong."""

    EXPECTATION = "expectation"  # the run is sound, and what was expected did not hold
    FIDELITY = "fidelity"  # the run cannot be believed
    CRASH = "crash"  # the run, or a node of it, ended by itself
    HARNESS = "harness"  # it could not be started or analysed: the machine, or a defect of the testbed


@dataclass(frozen=True, slots=True)
class Headline:
    """The numbers of a run that stand in its line, None if not measured; events at the slowest client."""

    events_per_s: float | None = None
    latency_p99_ms: float | None = None
    lost: Count | None = None

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> Self:
        """Of a summary.json; where the slowest client is unknown, the mean over clients."""
        throughput, latency, events = (summary.get(key) or {} for key in ("throughput", "latency", "events"))
        slowest = throughput.get("slowest_client_events_per_s")
        return cls(
            throughput.get("events_per_s") if slowest is None else slowest,
            latency.get("p99_ms"),
            events.get("lost"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRun:
    """One run of a campaign, and what became of it.

    name: tells it apart. repetition: from 0. run: its directory, below the campaign's folder of runs.
    started_ns: when it was last tried. duration_s: of wall clock, analysis included. allow_failure: whether
    the campaign is fine without it. problem: in a line, why it did not pass, or was not made.
    """

    PROGRESS: ClassVar[tuple[str, ...]] = (
        *("state", "run", "started_ns", "duration_s"),
        *("verdict", "failure", "problem", "headline"),
    )

    name: Name
    repetition: Count = 0
    seed: Seed
    state: State = State.PENDING
    run: Text | None = None
    started_ns: TimeNs | None = None
    duration_s: DurationS | None = None
    verdict: Verdict | None = None
    failure: Failure | None = None
    allow_failure: bool = False
    problem: Text | None = None
    headline: Headline = Headline()

    def going_on(self, known: Self) -> Self:
        """This planned run as far as the record has it; only what changes while a run is made is taken."""
        return replace(self, **{name: getattr(known, name) for name in self.PROGRESS})

    @property
    def ended(self) -> bool:
        """Whether nothing more is to be done for it."""
        return self.state not in {State.PENDING, State.RUNNING}

    @property
    def label(self) -> str:
        """What people call it."""
        return self.name


Run = TypeVar("Run", bound=CampaignRun)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRecord(Generic[Run]):
    """Runs made together. digest: of everything that decides what runs. outcome: None: going on, or torn."""

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
        """The runs that are still to be made, in their order."""
        return [run for run in self.runs if not run.ended]

    @property
    def ended(self) -> int:
        """How many runs have ended."""
        return sum(run.ended for run in self.runs)

    @property
    def failing(self) -> list[Run]:
        """The runs that fail the campaign, in their order."""
        return [run for run in self.runs if run.failure is not None and not run.allow_failure]

    def named(self, name: str) -> Run:
        """The run of that name, as far as it is."""
        return next(run for run in self.runs if run.name == name)

    def going_on(self, planned: Sequence[Run], where: str) -> Self:
        """The record with these runs, which follow from what the user asks for now, as far as they got.

        where: what the error names. Raises InputError if it has other runs.
        """
        if [run.name for run in planned] != [run.name for run in self.runs]:
            raise InputError(where, None, "", "cannot go on: it lists other runs")
        return replace(self, runs=tuple(map(CampaignRun.going_on, planned, self.runs)))

    def with_run(self, run: Run) -> Self:
        """The record with this run's new state."""
        return replace(self, runs=tuple(run if old.name == run.name else old for old in self.runs))


Record = TypeVar("Record", bound=CampaignRecord[Any])


def record_from_json(kind: type[Record], content: Any, file: Path) -> Record:
    """The record that `write_campaign` wrote. file: where it stood. Raises InputError with the field."""
    record = from_json(kind, content, file)
    names = Counter(run.name for run in record.runs)
    for number, run in enumerate(record.runs):
        if names[run.name] > 1:
            raise InputError(str(file), None, f"runs.{number}.name", f"several runs are called {run.name}")
    return record


def write_campaign(path: Path, record: CampaignRecord[Any]) -> None:
    """Write a record whole. Raises OSError."""
    write_json(path, to_json(record))


def renamed(content: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A JSON object of schema 1 by today's names. names: from then to now; "": there is no such field now."""
    return {names.get(key, key): value for key, value in content.items() if names.get(key, key)}


def schema_1_as_now(
    content: Mapping[str, Any],
    names: Mapping[str, str],
    run_as_now: Callable[[dict[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """A record of schema 1 by today's names. What is no record is left as it is, to be refused.

    run_as_now: one of its runs by today's names.
    """
    now = _on_one_line(renamed(content, names))
    runs = now.get("runs")
    if isinstance(runs, list) and all(isinstance(run, dict) for run in runs):
        now["runs"] = [run_as_now(_on_one_line(run)) for run in runs]
    return {**now, "schema": SCHEMA}


def _on_one_line(content: Mapping[str, Any]) -> dict[str, Any]:
    """With texts as they are written today."""

    def tidy(value: Any) -> Any:
        if isinstance(value, list):
            return [tidy(item) for item in value]
        return sanitize(value) if isinstance(value, str) else value

    return {key: tidy(value) for key, value in content.items()}
