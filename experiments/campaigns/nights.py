"""A night on disk: its runs and their results, so that it can continue after a crash.

    runs/nights/<date>-<suite>/
      night.json       its record (`campaign`), written after each step
      junit.xml        for CI systems
      log              messages with times

Its runs lie in runs/ like any other. Only this module knows the paths of a night. A run that is recorded as
running although no process executes it was interrupted: its directory is renamed and the run is repeated.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator

from experiments.campaigns.campaign import (
    CampaignRecord,
    CampaignRun,
    DurationS,
    RunState,
    record_from_json,
    write_campaign,
)
from experiments.files.plain_name import Below
from experiments.records.json_files import read_json
from experiments.records.run_record import Outcome
from experiments.records.rundir import RunDirectory, is_run_name
from experiments.records.validated_json import Count, Name, Text
from topologies.errors import InputError

NIGHTS = "nights"
"""The folder of nights, below the folder of runs."""
TORN = ".torn"
"""The suffix of run directories that a crash left incomplete."""


def night_of(now: datetime) -> date:
    """Return the night that begins now: today's date by this machine's clock and time zone."""
    return now.astimezone().date()


def _date(text: str) -> str:
    return date.fromisoformat(text).isoformat()


def _run_name(text: str) -> str:
    if not is_run_name(text):
        raise ValueError(f"{text!r:.80} is not the name of a run")
    return text


RunName = Annotated[str, AfterValidator(_run_name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRun(CampaignRun):
    """One run of a night: one repetition of an entry of the suite.

    name: `cut r2` is the third run of the entry `cut`. backend: local, simulator, or an inventory. torn:
    directories left by interrupted attempts. figures: those that are compared with other nights.
    """

    PROGRESS = (*CampaignRun.PROGRESS, "tries", "torn", "figures")

    entry: Name
    experiment: Name
    backend: Text
    run: RunName | None = None
    tries: Count = 0
    torn: tuple[RunName, ...] = ()
    figures: dict[Name, Text] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRecord(CampaignRecord[NightRun]):
    """The content of night.json.

    night: its date. spent_s: of the budget, up to the last recorded step. findings: regressions, one line
    each; findings_allowed: the same for entries that may fail. unchecked: why regressions could not be
    checked.
    """

    night: Annotated[str, AfterValidator(_date)]
    suite: Name
    budget_s: DurationS
    runs: tuple[NightRun, ...]
    spent_s: DurationS = 0.0
    exit_code: Count | None = None
    findings: tuple[Text, ...] = ()
    findings_allowed: tuple[Text, ...] = ()
    unchecked: Text | None = None

    @property
    def over(self) -> bool:
        """Whether the night completed."""
        return self.outcome is Outcome.COMPLETED


@dataclass(frozen=True, slots=True)
class NightDirectory:
    """A night's folder, which may not exist yet."""

    path: Path

    @classmethod
    def for_night(cls, runs: Path, night: date, suite: str) -> Self:
        """Return the folder of that night without creating it. runs: the folder of runs."""
        return cls(runs / NIGHTS / f"{night:%Y-%m-%d}-{suite}")

    @classmethod
    def latest(cls, runs: Path, suite: str, *, before: str = "") -> Self | None:
        """Return the last existing night of that suite. before: a date that it must precede, or ""."""
        dated = sorted(path.parent for path in (runs / NIGHTS).glob(f"????-??-??-{suite}/night.json"))
        found = [path for path in dated if not before or path.name < before]
        return cls(found[-1]) if found else None

    def earlier(self, suite: str) -> Iterator["NightRecord"]:
        """Yield the records of the suite's nights before this one, the last first; unreadable ones are left
        out.
        """
        found = self.latest(self.runs, suite, before=self.path.name)
        while found is not None:
            with suppress(InputError):
                yield found.read()
            found = self.latest(self.runs, suite, before=found.path.name)

    night_json = Below("night.json")  # the record of the night
    junit_xml = Below("junit.xml")  # the results for CI systems
    log = Below("log")  # messages with times

    @property
    def runs(self) -> Path:
        """The folder of runs, also of other campaigns."""
        return self.path.parent.parent

    def run_of(self, run: NightRun) -> RunDirectory | None:
        """Return the directory of a run, if it has one."""
        return RunDirectory(self.runs / run.run) if run.run else None

    def set_aside(self, run: NightRun) -> NightRun:
        """Reset the run to pending and rename its directory. Raises OSError."""
        left = self.run_of(run)
        torn = run.torn
        if left is not None and left.path.is_dir():
            name = f"{left.name}{TORN}"
            left.path.rename(left.path.with_name(name))
            torn = (*torn, name)
        return replace(run, state=RunState.PENDING, run=None, torn=torn)

    def read(self) -> NightRecord:
        """Read night.json. Raises InputError if it cannot be read."""
        return record_from_json(NightRecord, read_json(self.night_json), self.night_json)

    def write(self, record: NightRecord) -> None:
        """Write night.json; create the folder if needed. Raises OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_campaign(self.night_json, record)


def run_title(entry: str, repetition: int) -> str:
    """Return the name of a run: `cut r2` is the third of `cut`; repetitions count from 0."""
    return f"{entry} r{repetition}"
