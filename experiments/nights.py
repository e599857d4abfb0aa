"""A night on disk: which runs it is made of and what became of each, so that it can go on after a crash.

    runs/nights/<date>-<suite>/
      night.json       the record: one writer, written whole after each step
      junit.xml        for CI systems
      log              what was said, with times

Its runs stand in runs/ like any other. Every path of a night stands here and nowhere else. A run that stands
as running when nobody runs it was torn: its directory is set aside under another name, and it is made again.
"""

from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from experiments.json_files import read_json, write_json
from experiments.rundir import RunDirectory, is_run_name
from topologies.errors import InputError

SCHEMA = 1
NIGHTS = "nights"
"""The folder of nights, in the folder of runs."""
TORN = ".torn"
"""How names of run directories end that a crash left unfinished."""


def night_of(now: datetime) -> date:
    """The night that begins now: today's date, by this machine's clock and time zone."""
    return now.astimezone().date()


class State(StrEnum):
    """How far a run of a night is."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"  # it ran, and stands in the history
    FAILED = "failed"  # there is no run to speak of: see its problem
    SKIPPED = "skipped"  # there was no time left for it


class Failure(StrEnum):
    """What kind of thing went wrong."""

    EXPECTATION = "expectation"  # the run is sound, and what was expected did not hold
    FIDELITY = "fidelity"  # the run cannot be believed
    CRASH = "crash"  # the run, or a node of it, ended by itself
    HARNESS = "harness"  # it could not be started or analysed: the machine, or a defect of the testbed


@dataclass(frozen=True, slots=True)
class NightRun:
    """One run of a night: an entry of the suite, one of its repetitions."""

    entry: str
    repeat: int  # from 0
    seed: int
    experiment: str
    place: str  # local, simulator, or an inventory
    allow_failure: bool = False
    state: State = State.PENDING
    run: str | None = None  # its directory's name
    tries: int = 0
    torn: tuple[str, ...] = ()  # directories that earlier tries left
    verdict: str | None = None  # summary.json's
    failure: Failure | None = None
    problem: str | None = None  # why it failed or was skipped, in a line
    duration_s: float | None = None  # of wall clock, analysis included
    headline: dict[str, Any] = field(default_factory=dict)  # see `testbed.sweeps.headline`

    @property
    def key(self) -> tuple[str, int]:
        """What tells it apart in its night."""
        return (self.entry, self.repeat)

    @property
    def ended(self) -> bool:
        """Whether nothing more is to be done for it."""
        return self.state not in {State.PENDING, State.RUNNING}

    @property
    def title(self) -> str:
        """What people call it."""
        return run_title(self.entry, self.repeat)


@dataclass(frozen=True, slots=True)
class NightRecord:
    """The content of night.json."""

    night: str  # its date
    suite: str
    digest: str  # of everything that decides what runs
    commit: str | None
    budget_s: float
    started_ns: int
    runs: tuple[NightRun, ...]
    spent_s: float = 0.0  # of the budget: while it was on, up to the last step that was noted
    ended_ns: int | None = None
    outcome: str | None = None  # completed, interrupted, crashed; None: going on, or torn
    exit_code: int | None = None
    findings: tuple[str, ...] = ()  # what got worse tonight, a line each
    findings_allowed: tuple[str, ...] = ()  # the same, of entries that may fail
    unchecked: str | None = None  # why nobody knows whether something got worse
    schema: int = SCHEMA

    @property
    def over(self) -> bool:
        """Whether it came to its end."""
        return self.outcome == "completed"

    def with_run(self, run: NightRun) -> "NightRecord":
        """The record with this run's new state."""
        return replace(self, runs=tuple(run if old.key == run.key else old for old in self.runs))


@dataclass(frozen=True, slots=True)
class NightDirectory:
    """A night's folder, there or not yet there."""

    path: Path

    @classmethod
    def of(cls, runs: Path, night: date, suite: str) -> Self:
        """The folder of that night; nothing is made. runs: the folder of runs."""
        return cls(runs / NIGHTS / f"{night:%Y-%m-%d}-{suite}")

    @classmethod
    def latest(cls, runs: Path, suite: str, *, before: str = "") -> Self | None:
        """The last night of that suite that there is. before: a date that it must lie before, or any."""
        dated = sorted(path.parent for path in (runs / NIGHTS).glob(f"????-??-??-{suite}/night.json"))
        found = [path for path in dated if not before or path.name < before]
        return cls(found[-1]) if found else None

    @property
    def night_json(self) -> Path:
        """What it is made of, and what became of each run."""
        return self.path / "night.json"

    @property
    def junit_xml(self) -> Path:
        """The results for CI systems."""
        return self.path / "junit.xml"

    @property
    def log(self) -> Path:
        """What was said, with times."""
        return self.path / "log"

    @property
    def runs(self) -> Path:
        """The folder of runs, this night's and others'."""
        return self.path.parent.parent

    def run_of(self, run: NightRun) -> RunDirectory | None:
        """The directory of a run, if it got that far."""
        return RunDirectory(self.runs / run.run) if run.run else None

    def set_aside(self, run: NightRun) -> NightRun:
        """The run as not yet begun; what it left is renamed. Raises OSError."""
        left = self.run_of(run)
        torn = run.torn
        if left is not None and left.path.is_dir():
            name = f"{left.name}{TORN}"
            left.path.rename(left.path.with_name(name))
            torn = (*torn, name)
        return replace(run, state=State.PENDING, run=None, torn=torn)

    def read(self) -> NightRecord:
        """The content of night.json. Raises InputError if it cannot be read."""
        content = read_json(self.night_json)
        try:
            runs = tuple(_run(item) for item in content["runs"])
            lists = {key: tuple(content.get(key, ())) for key in ("findings", "findings_allowed")}
            return NightRecord(**{**content, **lists, "runs": runs})
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(str(self.night_json), None, "", f"is no record of a night: {error}") from None

    def write(self, record: NightRecord) -> None:
        """Write night.json, and make the folder if need be. Raises OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.night_json, asdict(record))


def run_title(entry: str, repeat: int) -> str:
    """`cut r2` is the third run of the entry `cut`: repetitions count from 0, as in the history."""
    return f"{entry} r{repeat}"


def _run(item: dict[str, Any]) -> NightRun:
    failure = item["failure"]
    for name in (*filter(None, [item["run"]]), *item["torn"]):
        if not is_run_name(name):
            raise ValueError(f"{name!r:.80} is no name of a run")
    return NightRun(
        **{
            **item,
            "state": State(item["state"]),
            "failure": None if failure is None else Failure(failure),
            "torn": tuple(item["torn"]),
        }
    )
