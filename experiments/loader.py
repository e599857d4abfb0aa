"""Finds, overrides, reads and checks experiment files: by name in this folder, or by path."""

import copy
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.campaigns.sweep import OF_MANY_RUNS, VARIANT, value_text
from experiments.checks import problems
from experiments.model import Experiment
from experiments.overrides import with_overrides, with_value, without_fields
from experiments.planned.strikes import strike_problems
from systems.images.store import located
from systems.names import is_path
from topologies.document import Document, files_in, find_file, read_document, validated
from topologies.errors import InputError
from topologies.loader import FOLDER as TOPOLOGIES
from topologies.loader import is_topology_file, lacks_package, load_topology, resolve_trace_paths, topology_in
from topologies.strict import suggestion

FOLDER = Path(__file__).parent

OF_VARIANTS = (f"{VARIANT}=", f"{VARIANT}s.")
"""Beginnings of overrides that choose or change variants."""


@dataclass(frozen=True, slots=True)
class ExperimentFile:
    """An experiment's file as it was read, with overrides; later changes of the file have no effect."""

    document: Document
    folder: Path
    experiment: Experiment
    left_out: tuple[str, ...] = ()
    """The fields that are set in the file but were removed before the checks."""

    @contextmanager
    def placing_errors(self) -> Iterator[None]:
        """Give file and line to errors that only name the experiment and a field."""
        try:
            yield
        except InputError as error:
            if error.line is not None or error.file != self.experiment.name or not error.field:
                raise
            path = tuple(int(part) if part.isdecimal() else part for part in error.field.split("."))
            path = ("sweep", error.field) if error.field in self.experiment.axes else path
            raise self.document.error(path, error.problem) from None

    def point(self, values: Mapping[str, Any]) -> Experiment:
        """Return the experiment for one combination of swept values.

        Raises InputError that names the value.
        """
        document = without_fields(self.document, OF_MANY_RUNS)
        for path, value in values.items():
            origin = f"sweep {path}={value}"
            settings = self.experiment.variants[value] if path == VARIANT else {path: value}
            document = _with_settings(document, settings, origin)
        return experiment_from(_with_files_found(document, self.folder))


def read_experiment(
    name_or_path: str, overrides: Sequence[str] = (), leave_out: Collection[str] = ()
) -> ExperimentFile:
    """Read an experiment by name or path and check it against its topology.

    overrides: `path=value` texts, as given to `--set`. leave_out: top-level fields to remove, whether the
    file or an override gives them. Raises InputError with file, line and field, or naming the override.
    """
    path = _find_experiment(name_or_path)
    document = _with_files_found(read_document(path), path.parent)
    first = [override for override in overrides if override.startswith(OF_VARIANTS)]
    document = _with_chosen_variants(with_overrides(document, first))
    document = _with_files_found(document, path.parent)
    rest = [override for override in overrides if override not in first]  # they win over a variant's settings
    document = _with_files_found(with_overrides(document, rest), Path())
    if any(override.startswith("topology=") for override in overrides):
        document = _without_other_topologies(document)
    given = document.data if isinstance(document.data, dict) else {}
    left_out = tuple(field for field in leave_out if given.get(field))
    document = without_fields(document, leave_out)
    file = ExperimentFile(document, path.parent, experiment_from(document), left_out)
    _check_sweep(file)
    return file


def load_experiment(name_or_path: str, overrides: Sequence[str] = ()) -> Experiment:
    """Load an experiment by name or path: see `read_experiment`.

    `load_topology(experiment.topology)` then works from any working directory.
    """
    return read_experiment(name_or_path, overrides).experiment


def experiment_from(document: Document) -> Experiment:
    """Build an experiment from a document and check it, except its sweep. Raises InputError."""
    experiment = validated(Experiment, document)
    try:
        topology = (
            load_topology(experiment.topology)
            if isinstance(experiment.topology, str)
            else topology_in(document.below(("topology",)))
        )
    except InputError as error:
        if error.line is not None or error.field:
            raise  # the error is in the topology's own file
        raise document.error(("topology",), f"{error.file}: {error.problem}") from None
    for path, problem in problems(experiment, topology):
        raise document.error(path, problem)
    asked = {each.path.split(".")[1] for each in experiment.expect if each.path.startswith("recovery.")}
    for number, problem in strike_problems(experiment.faults, topology, experiment.duration_us, asked):
        raise document.error(("faults", number, experiment.faults[number].kind), problem)
    return experiment


def experiment_names() -> list[str]:
    """Return the names of the experiments that come with Cutset."""
    return [file.stem for file in files_in(FOLDER)]


def _without_other_topologies(document: Document) -> Document:
    """Let the topology take the place of those that the sweep tries."""
    data = document.data
    sweep = data.get("sweep") if isinstance(data, dict) else None
    if not isinstance(sweep, dict) or "topology" not in sweep:
        return document
    return replace(document, data={**data, "sweep": {**sweep, "topology": [data["topology"]]}})


def _with_files_found(document: Document, folder: Path) -> Document:
    """Make the paths of topology, system and workload file absolute.

    They are relative to the experiment file's folder; in an override to the working directory.
    """
    data = document.data
    if not isinstance(data, dict):
        return document
    given = data.get("topology")
    if isinstance(given, str) and is_topology_file(given):
        found = find_file("topology", TOPOLOGIES, given, beside=folder)
        data = {**data, "topology": os.path.abspath(found)}  # noqa: PTH100  removes `..`, so that one file has one name
    elif isinstance(given, dict):
        data = {**data, "topology": copy.deepcopy(given)}
        resolve_trace_paths(data["topology"], folder)
    system = data.get("system")
    if isinstance(system, str) and is_path(system):
        if not (folder / system).exists():
            raise document.error(("system",), f"there is no file {system}")
        data = {**data, "system": str((folder / system).absolute())}
    if isinstance(images := data.get("images"), dict):
        data = {**data, "images": {role: located(str(each), folder) for role, each in images.items()}}
    workload = data.get("workload")
    events = workload.get("events") if isinstance(workload, dict) else None
    rows = events.get("file") if isinstance(events, dict) else None
    if isinstance(workload, dict) and isinstance(events, dict) and isinstance(rows, str):
        events = {**events, "file": str((folder / rows).absolute())}
        data = {**data, "workload": {**workload, "events": events}}
    return replace(document, data=data)


def _with_chosen_variants(document: Document) -> Document:
    """Apply the override `variant` of `--variant` and `--set variant=NAME`.

    A name applies the variant's settings; a list of names drops the other variants. Raises InputError.
    """
    if not isinstance(document.data, dict) or VARIANT not in document.data:
        return document
    chosen, variants = document.data[VARIANT], document.data.get("variants")
    known = variants if isinstance(variants, dict) else {}
    names = chosen if isinstance(chosen, list) else [chosen]
    for name in names:
        if not isinstance(name, str) or not isinstance(known.get(name), dict):
            texts = [each for each in known if isinstance(each, str)]
            raise document.error((VARIANT,), f"there is no variant {name}{suggestion(str(name), texts)}")
    if isinstance(chosen, list):
        left = without_fields(document, (VARIANT,))
        return replace(left, data={**left.data, "variants": {name: known[name] for name in names}})
    left = without_fields(document, (VARIANT, "variants"))
    return _with_settings(left, known[chosen], f"variant {chosen}")


def _find_experiment(name_or_path: str) -> Path:
    """Return the experiment's file. Raises InputError, which names the variant if the name is one."""
    try:
        return find_file("experiment", FOLDER, name_or_path)
    except InputError:
        for file in files_in(FOLDER):
            variants = read_document(file).data.get("variants") or {}
            for variant in sorted(variants, key=len, reverse=True):
                if name_or_path == variant or name_or_path.endswith(f"-{variant}"):
                    command = f"{file.stem} --variant {variant}"
                    raise InputError(name_or_path, None, "", f"is a variant: give {command}") from None
        raise


def _with_settings(document: Document, settings: Mapping[str, Any], origin: str) -> Document:
    for path, value in settings.items():
        document = with_value(document, str(path), value, origin)
    return document


def _check_sweep(file: ExperimentFile) -> None:
    """Check that each swept value gives a valid experiment, with all else as in the file."""
    for path, values in file.experiment.axes.items():
        for value in values:
            if path == "topology" and lacks_package(value):
                continue  # only its run needs the package
            try:
                file.point({path: value})
            except InputError as error:
                elsewhere = error.line is not None and error.file != file.document.file
                message = str(error) if elsewhere else _with_field(error)
                where = ("variants", value) if path == VARIANT else ("sweep", path)
                raise file.document.error(where, f"with {path}={value_text(value)}: {message}") from None


def _with_field(error: InputError) -> str:
    return f"{error.field}: {error.problem}" if error.field else error.problem
