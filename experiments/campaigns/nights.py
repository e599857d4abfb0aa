"""A night on disk: which runs it is made of and what became of each, so that it can go on after a crash.

    runs/nights/<date>-<suite>/
      night.json       its record (`campaign`), written after each step
      junit.xml        for CI systems
      log              what was said, with times

Its runs stand in runs/ like any other. Every path of a night stands here and nowhere else. A run that stands
as running when nobody runs it was torn: its directory is set aside under another name, and it is made again.
"""

from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator

from experiments.campaigns.campaign import (
    CampaignRecord,
    CampaignRun,
    DurationS,
    State,
    record_from_json,
    renamed,
    schema_1_as_now,
    write_campaign,
)
from experiments.records.json_files import read_json
from experiments.records.run_record import Outcome
from experiments.records.rundir import RunDirectory, is_run_name
from experiments.records.validated_json import Count, Name, Text

NIGHTS = "nights"
"""The folder of nights, in the folder of runs."""
TORN = ".torn"
"""How names of run directories end that a crash left unfinished."""


def night_of(now: datetime) -> date:
    """The night that begins now: today's date, by this machine's clock and time zone."""
    return now.astimezone().date()


def _date(text: str) -> str:
    return date.fromisoformat(text).isoformat()


def _run_name(text: str) -> str:
    if not is_run_name(text):
        raise ValueError(f"{text!r:.80} is no name of a run")
    return text


RunName = Annotated[str, AfterValidator(_run_name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRun(CampaignRun):
    """One run of a night: an entry of the suite, one of its repetitions.

    name: `cut r2` is the third of the entry `cut`. backend: local, simulator, or an inventory. torn:
    directories that earlier tries left.
    """

    PROGRESS = (*CampaignRun.PROGRESS, "tries", "torn")

    entry: Name
    experiment: Name
    backend: Text
    run: RunName | None = None
    tries: Count = 0
    torn: tuple[RunName, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRecord(CampaignRecord[NightRun]):
    """The content of night.json.

    night: its date. spent_s: of the budget, while the night was on, up to the last step that was noted.
    findings: what got worse, a line each; findings_allowed: the same, of entries that may fail. unchecked:
    why nobody knows whether something got worse.
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
        """Whether it came to its end."""
        return self.outcome is Outcome.COMPLETED


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
        if content.get("schema") == 1:
            content = schema_1_as_now(content, {}, _run_as_now)
        return record_from_json(NightRecord, content, self.night_json)

    def write(self, record: NightRecord) -> None:
        """Write night.json, and make the folder if need be. Raises OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_campaign(self.night_json, record)


def run_title(entry: str, repetition: int) -> str:
    """`cut r2` is the third run of the entry `cut`: repetitions count from 0, as in the history."""
    return f"{entry} r{repetition}"


def _run_as_now(run: dict[str, Any]) -> dict[str, Any]:
    """A run of schema 1, which had no name of its own."""
    now = renamed(run, {"repeat": "repetition", "place": "backend"})
    return {"name": f"{run.get('entry')} r{run.get('repeat')}", **now}
