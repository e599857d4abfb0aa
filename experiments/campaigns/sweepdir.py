"""The directory of a sweep, with one run directory for every combination of values and repetition.

    runs/<UTC time>-<experiment>-<6 hex>/
      sweep.json       its record (`campaign`): the swept values and the result of each run
      report.html      one page for the whole sweep
      systems.html     its variants side by side, if it has any
      figures/
      points/<number>-<values>-r<repetition>/     a run directory like any other

All its paths are defined here and nowhere else, and computed from the plan's names instead of read. A run
that is not recorded as done in sweep.json was interrupted or failed; resuming the sweep repeats it.
"""

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from experiments.campaigns.campaign import (
    CampaignRecord,
    CampaignRun,
    RunState,
    record_from_json,
    write_campaign,
)
from experiments.campaigns.sweep import points, value_text, values_text
from experiments.campaigns.sweep_expectations import SweepExpectation, SweepJudgement
from experiments.files.plain_name import Below, check_folder, plain_name, refuse_link
from experiments.records.json_files import read_json
from experiments.records.run_record import read_request
from experiments.records.rundir import POINTS, DatedDirectory, RunDirectory
from experiments.records.validated_json import Count, FileName, Name, Seed, Text, from_json
from topologies.errors import InputError

VALUES_TEXT_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRun(CampaignRun):
    """A run of a sweep: a combination of values, with one repetition's seed.

    name: of its directory, such as "03-driver-4-r0". number: of the combination, from 1. values: by dotted
    path.
    """

    name: FileName
    number: Annotated[int, Field(ge=1)]
    values: dict[Name, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Its values, as for `--set`."""
        return values_text(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRecord(CampaignRecord[SweepRun]):
    """The content of sweep.json.

    experiment: in the form of its file, overrides included. seed: of repetition 0. expectations: on all runs
    together.
    """

    sweep: Name
    experiment: dict[str, Any]
    backend: Text
    links: Text
    seed: Seed
    repeat: Count
    runs: tuple[SweepRun, ...]
    expectations: tuple[SweepJudgement, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether each run is done or skipped, so that there is nothing to resume."""
        return all(run.state in {RunState.DONE, RunState.SKIPPED} for run in self.runs)

    @property
    def made(self) -> list[SweepRun]:
        """The runs that were not skipped."""
        return [run for run in self.runs if run.state is not RunState.SKIPPED]

    @property
    def missed(self) -> list[SweepJudgement]:
        """The expectations on all runs together that did not hold."""
        return [expectation for expectation in self.expectations if not expectation.held]

    @property
    def passed(self) -> bool:
        """Whether every run passed, and the expectations on all together held."""
        return self.complete and not self.missed and all(run.verdict == "passed" for run in self.made)

    def runs_to_resume(self, planned: Sequence[SweepRun], where: str) -> tuple[SweepRun, ...]:
        """Return the planned runs; those that were completed keep their results. See `resumed_from`."""
        known = self.resumed_from(planned, where).runs
        return tuple(
            run if run.state is RunState.DONE else plan for plan, run in zip(planned, known, strict=True)
        )


def _comparison(text: str) -> str:
    SweepExpectation.parse(text)
    return text


@dataclass(frozen=True, slots=True)
class _Swept:
    """The fields of its experiment that a sweep's pages read, besides those of a run
    (`run_record.ExperimentRequest`).
    """

    sweep: dict[Name, list[Any]] | None
    variants: dict[Name, dict[str, Any]] | None
    expect_sweep: tuple[Annotated[str, AfterValidator(_comparison)], ...] | None


def runs(sweep: Mapping[str, Sequence[Any]], repeat: int, seed: int) -> list[SweepRun]:
    """Return all runs in order: every combination once, then the next repetition.

    seed: of the first repetition; each further one has the next seed.
    """
    combinations = points(sweep)
    width, repetition_width = len(str(len(combinations))), len(str(repeat - 1))

    def name(number: int, values: Mapping[str, Any], repetition: int) -> str:
        parts = (f"{number:0{width}}", _slug(values), f"r{repetition:0{repetition_width}}")
        return "-".join(filter(None, parts))

    return [
        SweepRun(
            name=name(number, values, repetition),
            number=number,
            values=values,
            repetition=repetition,
            seed=seed + repetition,
        )
        for repetition in range(repeat)
        for number, values in enumerate(combinations, 1)
    ]


@dataclass(frozen=True, slots=True)
class SweepDirectory(DatedDirectory):
    """A sweep's directory, which may not exist yet."""

    NOUN = "directory of a sweep"
    RECORD = "sweep.json"

    sweep_json = Below(RECORD)  # the record of the sweep
    # the page with its variants side by side; its figure is beside it, as PNG and SVG
    systems_html = Below("systems.html")
    points = Below(POINTS)  # the folder of run directories

    def make(self) -> None:
        """Create the directory and its folder of runs. Raises OSError."""
        self.points.mkdir(parents=True)

    def check_folders(self) -> None:
        """Check the folders of the sweep and of its runs, as for a run. Raises InputError."""
        self.check_files()
        for folder in (self.figures, self.points):
            check_folder(folder)
        for run in sorted(self.points.iterdir()) if self.points.is_dir() else ():
            refuse_link(run)
            if run.is_dir():
                RunDirectory(run).check_folders()

    def run_of(self, run: SweepRun) -> RunDirectory:
        """Return the directory of a run, existing or not, computed from its name instead of the record."""
        return RunDirectory(self.points / plain_name(run.name, self.sweep_json))

    def make_run(self, run: SweepRun) -> RunDirectory:
        """Create an empty directory for a run; remove what an earlier attempt left.

        Raises OSError, and InputError if a symbolic link would redirect the removal.
        """
        made = self.run_of(run)
        refuse_link(self.points)
        refuse_link(made.path)
        shutil.rmtree(made.path, ignore_errors=True)
        made.make()
        return made

    def read(self) -> SweepRecord:
        """Read sweep.json. Raises InputError if it cannot be read."""
        record = record_from_json(SweepRecord, read_json(self.sweep_json), self.sweep_json)
        read_request(record.experiment, self.sweep_json)
        swept = {each.name: record.experiment.get(each.name) for each in fields(_Swept)}
        from_json(_Swept, swept, self.sweep_json)
        for number, run in enumerate(record.runs):
            if run.run not in {None, f"{POINTS}/{run.name}"}:
                problem = f"{run.run} is not the directory of {run.name}: it leads elsewhere"
                raise InputError(str(self.sweep_json), None, f"runs.{number}.run", problem)
        return record

    def write(self, record: SweepRecord) -> None:
        """Write sweep.json."""
        write_campaign(self.sweep_json, record)


def replay_command(experiment: str, overrides: Sequence[str], run: SweepRun, backend: str) -> str:
    """Return the command that repeats this run. experiment, overrides: as the user gave them."""
    values = [f"{path}={value_text(value)}" for path, value in run.values.items()]
    settings = [*overrides, *(["sweep=null"] if values else []), *values]
    options = [f"--set {shlex.quote(setting)}" for setting in settings]
    last = [f"--seed {run.seed}", "--repeat 1", f"--on {shlex.quote(backend)}"]
    return " ".join(["cutset run", shlex.quote(experiment), *options, *last])


def _slug(values: Mapping[str, Any]) -> str:
    """Return `driver-4-rate-5000-s`, for users who look for a run; the number alone identifies it."""
    text = "-".join(f"{path.split('.')[-1]}-{value_text(value)}" for path, value in values.items())
    return re.sub(r"[^A-Za-z0-9.]+", "-", text)[:VALUES_TEXT_MAX].strip("-.")
