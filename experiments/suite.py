"""A suite's file: the experiments and studies that a night runs, their order and repetitions, and the limit.

An entry is one experiment with settings, so one point: the experiment's own `sweep` and `repeat` are ignored,
unless the entry asks for the whole `sweep`, which is then one run of the night; or it is a study. Reading a
suite reads and checks every entry, so that a mistyped name is found before the night starts.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from experiments.backend_names import SIMULATOR
from experiments.campaigns.sweep import OF_MANY_RUNS
from experiments.hunting.huntable import default_backend, refuse_unusable
from experiments.loader import FOLDER as EXPERIMENTS
from experiments.loader import ExperimentFile, read_experiment
from topologies.document import Document, FieldPath, files_in, find_file, read_document, validated
from topologies.errors import InputError
from topologies.json_schema import schema_of
from topologies.loader import FOLDER as TOPOLOGIES
from topologies.quantities import yaml_name
from topologies.strict import DurationUs, Flag, Name, StrictModel, WholeNumber, problem

if TYPE_CHECKING:
    from experiments.campaigns.studies import StudyPlan

FOLDER = Path(__file__).parent / "suites"
ENTRIES_MAX = 500
REPEAT_MAX = 100
BUDGET_US_MIN = 10_000_000
BUDGET_US_MAX = 7 * 24 * 3600 * 1_000_000


class SuiteEntry(StrictModel):
    """An experiment or a study of a suite."""

    name: Name
    """The name of its runs and series; unique in the suite."""
    experiment: str = Field("", max_length=4096)
    """The experiment: a name, or a path to a file, relative to this one. An entry has this or a study."""
    study: Name | None = None
    """The study, as `cutset study` lists them; `set` has its parameters. It is one run with seed 1."""
    unchanged: Flag = False
    """For a sweep in virtual time: run with seed 1, and fail if a figure of a paper differs from the last
    night that has it. Studies always do so.
    """
    settings: dict[str, Any] = Field(default_factory=dict, alias="set")
    """Fields of the experiment to override, by dotted path, as for `--set`."""
    topology: str | None = Field(None, max_length=4096)
    """A topology that replaces the experiment's: a name, or a path to a file, relative to this one."""
    repeat: WholeNumber = Field(1, ge=1, le=REPEAT_MAX)
    """The number of runs, each with its own seed."""
    sweep: Flag = False
    """Run the experiment's whole sweep with its repetitions as one run, which is not in the history."""
    hunt_us: DurationUs | None = Field(None, ge=BUDGET_US_MIN, le=BUDGET_US_MAX)
    """The duration of a hunt for faults that break the system's promises, instead of a run. The system must
    support hunts; a hunt is not in the history.
    """
    on: str | None = Field(None, max_length=4096)
    """The backend: local, simulator, or a path to an inventory, relative to this file; default: the
    experiment's.
    """
    links: Literal["auto", "netem", "relay"] = "auto"
    """The kind of link emulation."""
    budget_us: DurationUs | None = Field(None, ge=BUDGET_US_MIN, le=BUDGET_US_MAX)
    """The limit of the time that its runs may take together, analysis included."""
    allow_failure: Flag = False
    """Whether the night passes even if this entry fails; the failure is shown."""

    @property
    def is_single(self) -> bool:
        """Whether it makes single runs, which enter the history."""
        return not self.sweep and self.hunt_us is None and self.study is None

    @property
    def is_watched(self) -> bool:
        """Whether its figures must equal those of the last night."""
        return self.study is not None or self.unchanged

    @model_validator(mode="after")
    def _one_point(self) -> Self:
        if (self.study is None) == (not self.experiment):
            raise problem("an entry has an experiment or a study", "study" if self.study else "experiment")
        if self.unchanged and not self.sweep:
            raise problem("only a sweep's figures can be watched, and a study's are", "unchanged")
        for field in ("topology", "repeat", "sweep", "hunt_us", "on", "links") if self.study else ():
            if field in self.model_fields_set:
                raise problem("a study is one run in virtual time", yaml_name(field))
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
            if self.study is None and not self.sweep and path.split(".")[0] in OF_MANY_RUNS:
                raise problem("an entry is one point: give `repeat` to the entry", "set", path)
            if path == "topology":
                raise problem("belongs next to `set`, not into it", "set", path)
        return self


class Suite(StrictModel):
    """The content of a suite's file."""

    suite: Name
    """Its name."""
    description: str = Field("", max_length=500)
    """One line for lists."""
    budget_us: DurationUs = Field(ge=BUDGET_US_MIN, le=BUDGET_US_MAX)
    """The time limit of the night; runs that no longer fit are skipped and reported."""
    entries: tuple[SuiteEntry, ...] = Field(min_length=1, max_length=ENTRIES_MAX)
    """The entries in the order in which they run."""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [entry.name for entry in self.entries]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise problem(f"there is an entry {name} before it", "entries", number, "name")
        return self


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """A suite and the experiment of each entry, settings included."""

    suite: Suite
    experiments: dict[str, ExperimentFile]
    """The experiments by entry name."""
    studies: "dict[str, StudyPlan]"
    """The studies by entry name."""
    named: str
    """The name or path that the user gave."""
    folder: Path
    """The folder of the file."""

    def subject(self, entry: SuiteEntry) -> str:
        """Return the name of the entry's experiment or study."""
        return entry.study or self.experiments[entry.name].experiment.name

    def place(self, entry: SuiteEntry) -> str:
        """Return the backend of the entry; an inventory's path is absolute."""
        if entry.study is not None:
            return SIMULATOR
        if entry.hunt_us is not None:
            return default_backend(self.experiments[entry.name].experiment)
        on = entry.on or self.experiments[entry.name].experiment.on
        return str((self.folder / on).absolute()) if "/" in on or on.endswith((".yaml", ".yml")) else on


def read_suite(name_or_path: str) -> SuiteFile:
    """Read a suite by name or path. Raises InputError with file, line and field."""
    path = find_file("suite", FOLDER, name_or_path)
    document = read_document(path)
    suite = validated(Suite, document)
    experiments = {
        entry.name: _experiment_of(entry, number, document, path.parent)
        for number, entry in enumerate(suite.entries)
        if entry.study is None
    }
    studies = {
        entry.name: _study_of(entry.study, entry.settings, number, document)
        for number, entry in enumerate(suite.entries)
        if entry.study is not None
    }
    return SuiteFile(suite, experiments, studies, name_or_path, path.parent)


def suite_names() -> list[str]:
    """Return the names of the suites that come with Cutset."""
    return [file.stem for file in files_in(FOLDER)]


def suite_schema() -> dict[str, Any]:
    """Return the JSON schema of a suite's file."""
    return schema_of(Suite)


def overrides_of(settings: dict[str, Any]) -> list[str]:
    """Return the settings as texts for `--set`. JSON is YAML."""
    return [f"{path}={json.dumps(value)}" for path, value in settings.items()]


def _study_of(study: str, settings: dict[str, Any], number: int, document: Document) -> "StudyPlan":
    from experiments.campaigns.studies import chosen_study  # noqa: PLC0415 - keeps listing quick

    try:
        return chosen_study(study, overrides_of(settings))
    except InputError as error:
        field = ("set", error.field) if error.field else ("study",)
        raise document.error(("entries", number, *field), error.problem) from None


def _experiment_of(entry: SuiteEntry, number: int, document: Document, folder: Path) -> ExperimentFile:
    overrides = overrides_of(entry.settings)
    try:
        if entry.topology is not None:
            overrides.append(f"topology={_found('topology', TOPOLOGIES, entry.topology, folder)}")
        experiment = _found("experiment", EXPERIMENTS, entry.experiment, folder)
        file = read_experiment(experiment, overrides, leave_out=() if entry.sweep else OF_MANY_RUNS)
        if entry.hunt_us is not None:
            refuse_unusable(file.experiment, default_backend(file.experiment))
    except InputError as error:
        path = ("entries", number, *_field_of(error, entry))
        message = error.problem if error.file.startswith("--set ") else str(error)
        raise document.error(path, message) from None
    if entry.sweep and not file.experiment.axes and file.experiment.repeat == 1 and not entry.unchanged:
        raise document.error(("entries", number, "sweep"), f"{file.experiment.name} has no sweep")
    if entry.unchanged and (entry.on or file.experiment.on) != SIMULATOR:
        raise document.error(("entries", number, "unchanged"), "only runs in virtual time repeat exactly")
    return file


def _found(kind: str, folder: Path, name_or_path: str, beside: Path) -> str:
    """Return a name unchanged and a path as absolute path."""
    found = find_file(kind, folder, name_or_path, beside=beside)
    return name_or_path if found.parent == folder else str(found.absolute())


def _field_of(error: InputError, entry: SuiteEntry) -> FieldPath:
    """Return the field of the entry that caused an error in its experiment."""
    for path in _longest_first(entry.settings):
        if error.file.startswith(f"--set {path}="):
            return ("set", path)
    if error.file.startswith("--set topology=") or error.file == entry.topology:
        return ("topology",)
    return ("experiment",)


def _longest_first(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=len, reverse=True)
