"""Finds, overrides, reads and checks experiment files: by name among those beside this module, or by path."""

from collections.abc import Sequence
from pathlib import Path

from experiments.checks import problems
from experiments.model import Experiment
from experiments.overrides import overridden, with_value
from topologies.document import Document, files_in, find_file, read_document, validated
from topologies.errors import InputError
from topologies.loader import FOLDER as TOPOLOGIES
from topologies.loader import load_topology

FOLDER = Path(__file__).parent


def load_experiment(name_or_path: str, overrides: Sequence[str] = ()) -> Experiment:
    """The experiment of this name, or in this file, checked against its topology.

    overrides: `path=value` texts, as given to `--set`. `load_topology(experiment.topology)` then works,
    wherever the experiment's file lies. Raises InputError with file, line and field, or naming the override.
    """
    path = find_file("experiment", FOLDER, name_or_path)
    document = _with_topology_found(read_document(path), path.parent)
    document = overridden(document, overrides)
    experiment = experiment_from(document)
    _check_sweep(document, experiment)
    return experiment


def experiment_from(document: Document) -> Experiment:
    """The document as an experiment, checked against its topology but for its sweep. Raises InputError."""
    experiment = validated(Experiment, document)
    try:
        topology = load_topology(experiment.topology)
    except InputError as error:
        if error.file != experiment.topology:
            raise
        raise document.error(("topology",), f"{error.file}: {error.problem}") from None
    for path, problem in problems(experiment, topology):
        raise document.error(path, problem)
    return experiment


def experiment_names() -> list[str]:
    """The names of the experiments that come with Cutset."""
    return [file.stem for file in files_in(FOLDER)]


def _with_topology_found(document: Document, folder: Path) -> Document:
    """A topology's path starts from the file's folder; one in an override from the working directory."""
    given = document.data.get("topology") if isinstance(document.data, dict) else None
    if not isinstance(given, str) or ("/" not in given and not given.endswith((".yaml", ".yml"))):
        return document
    found = find_file("topology", TOPOLOGIES, given, beside=folder)
    return Document(document.file, {**document.data, "topology": str(found.absolute())}, document.lines)


def _check_sweep(document: Document, experiment: Experiment) -> None:
    """Each value of the sweep must make a valid experiment, the rest being as in the file."""
    bare = with_value(document, "sweep", None, "")
    for path, values in experiment.sweep.items():
        for value in values:
            try:
                experiment_from(with_value(bare, path, value, f"{path}={value}"))
            except InputError as error:
                raise document.error(("sweep", path), f"with {path}={value}: {error.problem}") from None
