"""A suite's file: which experiments a night runs, in which order, how often, and within what time.

An entry is one experiment with settings, so one point: what the experiment's own file says of `sweep` and
`repeat` does not count, unless the entry asks for the whole `sweep`, which then is one run of the night.
Every entry is read and checked when the suite is, so that a night does not find out at four in the morning
that a name is mistyped.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from experiments.campaigns.sweep import OF_MANY_RUNS
from experiments.hunting.huntable import refuse_unusable, usual_place
from experiments.loader import FOLDER as EXPERIMENTS
from experiments.loader import ExperimentFile, read_experiment
from topologies.document import Document, FieldPath, files_in, find_file, read_document, validated
from topologies.errors import InputError
from topologies.json_schema import schema_of
from topologies.loader import FOLDER as TOPOLOGIES
from topologies.strict import DurationUs, Flag, Name, StrictModel, WholeNumber, problem

FOLDER = Path(__file__).parent / "suites"
ENTRIES_MAX = 500
REPEAT_MAX = 100
BUDGET_US_MIN = 10_000_000
BUDGET_US_MAX = 7 * 24 * 3600 * 1_000_000


class Entry(StrictModel):
    """An experiment of a suite."""

    name: Name
    """What its runs and series are called; unique in the suite."""
    experiment: str = Field(max_length=4096)
    """The experiment: a name, or a path to a file, relative to this one."""
    settings: dict[str, Any] = Field(default_factory=dict, alias="set")
    """Fields of the experiment to override, by dotted path, as after `--set`."""
    topology: str | None = Field(None, max_length=4096)
    """Another topology than the experiment's: a name, or a path to a file, relative to this one."""
    repeat: WholeNumber = Field(1, ge=1, le=REPEAT_MAX)
    """How many runs it makes, each with a seed of its own."""
    sweep: Flag = False
    """Whether it is the experiment's whole sweep, with its repetitions, as one run; not in the history."""
    hunt_us: DurationUs | None = Field(None, ge=BUDGET_US_MIN, le=BUDGET_US_MAX)
    """For how long it hunts, in place of a run, for faults that break what the experiment's system promises;
    where its system can be hunted, and not in the history.
    """
    on: str | None = Field(None, max_length=4096)
    """Where it runs: local, simulator, or a path to an inventory, relative to this file; unless given, as the
    experiment says.
    """
    links: Literal["auto", "netem", "relay"] = "auto"
    """What carries links."""
    budget_us: DurationUs | None = Field(None, ge=BUDGET_US_MIN, le=BUDGET_US_MAX)
    """The longest that its runs may take together, analysis included."""
    allow_failure: Flag = False
    """Whether the night is fine although it fails; it is shown all the same."""

    @property
    def is_single(self) -> bool:
        """Whether it makes single runs, which enter the history."""
        return not self.sweep and self.hunt_us is None

    @model_validator(mode="after")
    def _one_point(self) -> Self:
        if self.sweep and self.repeat > 1:
            raise problem("a sweep is one run: set.repeat says how often each combination runs", "repeat")
        if self.hunt_us is not None:
            for field, given in (
                ("sweep", self.sweep),
                ("repeat", self.repeat > 1),
                ("on", self.on is not None),
            ):
                if given:
                    raise problem("a hunt is one run, where its system can be hunted", field)
        for path in self.settings:
            if not self.sweep and path.split(".")[0] in OF_MANY_RUNS:
                raise problem("an entry is one point: give `repeat` to the entry", "set", path)
            if path == "topology":
                raise problem("belongs beside `set`", "set", path)
        return self


class Suite(StrictModel):
    """What a night runs."""

    suite: Name
    """What it is called."""
    description: str = Field("", max_length=500)
    """One line for lists."""
    budget_us: DurationUs = Field(ge=BUDGET_US_MIN, le=BUDGET_US_MAX)
    """The longest that the night may take; what no longer fits is left out, and said."""
    entries: tuple[Entry, ...] = Field(min_length=1, max_length=ENTRIES_MAX)
    """In the order in which they run."""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [entry.name for entry in self.entries]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise problem(f"there is an entry {name} before it", "entries", number, "name")
        return self


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """A suite as it was read, with the experiment of each entry, settings included."""

    suite: Suite
    experiments: dict[str, ExperimentFile]
    """By the entry's name."""
    named: str
    """As the user named it."""
    folder: Path
    """The folder of the file."""

    def place(self, entry: Entry) -> str:
        """Where the entry runs; of an inventory a path that counts from anywhere."""
        if entry.hunt_us is not None:
            return usual_place(self.experiments[entry.name].experiment)
        on = entry.on or self.experiments[entry.name].experiment.on
        return str((self.folder / on).absolute()) if "/" in on or on.endswith((".yaml", ".yml")) else on


def read_suite(name_or_path: str) -> SuiteFile:
    """The suite of this name, or in this file. Raises InputError with file, line and field."""
    path = find_file("suite", FOLDER, name_or_path)
    document = read_document(path)
    suite = validated(Suite, document)
    experiments = {
        entry.name: _experiment_of(entry, number, document, path.parent)
        for number, entry in enumerate(suite.entries)
    }
    return SuiteFile(suite, experiments, name_or_path, path.parent)


def suite_names() -> list[str]:
    """The names of the suites that come with Cutset."""
    return [file.stem for file in files_in(FOLDER)]


def suite_schema() -> dict[str, Any]:
    """The JSON schema of a suite's file."""
    return schema_of(Suite)


def overrides_of(settings: dict[str, Any]) -> list[str]:
    """The settings as texts for `--set`. JSON is YAML."""
    return [f"{path}={json.dumps(value)}" for path, value in settings.items()]


def _experiment_of(entry: Entry, number: int, document: Document, folder: Path) -> ExperimentFile:
    overrides = overrides_of(entry.settings)
    try:
        if entry.topology is not None:
            overrides.append(f"topology={_found('topology', TOPOLOGIES, entry.topology, folder)}")
        experiment = _found("experiment", EXPERIMENTS, entry.experiment, folder)
        file = read_experiment(experiment, overrides, leave_out=() if entry.sweep else OF_MANY_RUNS)
        if entry.hunt_us is not None:
            refuse_unusable(file.experiment, usual_place(file.experiment))
    except InputError as error:
        path = ("entries", number, *_field_of(error, entry))
        said = error.problem if error.file.startswith("--set ") else str(error)
        raise document.error(path, said) from None
    if entry.sweep and not file.experiment.axes and file.experiment.repeat == 1:
        raise document.error(("entries", number, "sweep"), f"{file.experiment.name} has no sweep")
    return file


def _found(kind: str, folder: Path, name_or_path: str, beside: Path) -> str:
    """A name as it is, a path as it counts from anywhere."""
    found = find_file(kind, folder, name_or_path, beside=beside)
    return name_or_path if found.parent == folder else str(found.absolute())


def _field_of(error: InputError, entry: Entry) -> FieldPath:
    """The field of the entry that an error about its experiment is about."""
    for path in _longest_first(entry.settings):
        if error.file.startswith(f"--set {path}="):
            return ("set", path)
    if error.file.startswith("--set topology=") or error.file == entry.topology:
        return ("topology",)
    return ("experiment",)


def _longest_first(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=len, reverse=True)
