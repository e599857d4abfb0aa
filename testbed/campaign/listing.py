"""What `cutset list` shows: the files that come with Cutset, with their descriptions or why they are
unusable. Experiments stand below the question that they answer.

Checking that a file is usable means reading it with its sweep, its topology and its system, which takes
seconds for all. If all are usable, the list is cached in `.cache/` with a digest of the files and of our code
that reads them. While the digest stays the same, the cache is used. Errors are never cached, nor are lists
that include systems from elsewhere.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.declared import declared_by, only_builtin_systems
from experiments.files.whole_files import write_whole
from topologies.errors import InputError

if TYPE_CHECKING:
    from experiments.model import Experiment

QUESTIONS = (
    "Experiments: what if a link fails?",
    "Experiments: what if processes fail, come or go?",
    "Experiments: what if anything fails, by chance?",
    "Experiments: how do systems compare?",
    "Experiments: what do load, size and settings change?",
)
PROJECT = Path(__file__).resolve().parents[2]
DECIDING = ("topologies", "systems", "experiments", "node")
KEPT = PROJECT / ".cache" / "list.json"

Sections = Mapping[str, Mapping[str, str | InputError]]
"""By title and name: the description of a file, or the error that makes it unusable."""


def sections() -> Sections:
    """Return all files that come with Cutset."""
    digest = _digest()
    kept = _cached(digest)
    if kept is not None:
        return kept
    found = _checked()
    usable = not any(isinstance(text, InputError) for part in found.values() for text in part.values())
    if usable and only_builtin_systems():
        with suppress(OSError):  # the checkout is read-only: checked again next time
            KEPT.parent.mkdir(exist_ok=True)
            write_whole(KEPT, json.dumps({"digest": digest, "sections": found}), sync=False)
    return found


def _cached(digest: str) -> Sections | None:
    """Return the cached list if its digest is this one."""
    try:
        kept = json.loads(KEPT.read_bytes())
        return kept["sections"] if kept["digest"] == digest else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _checked() -> Sections:
    from experiments.loader import experiment_names, load_experiment
    from experiments.suite import read_suite, suite_names
    from systems.loader import load_system
    from systems.names import system_names
    from topologies.loader import load_topology, topology_names

    found: dict[str, dict[str, str | InputError]] = {question: {} for question in QUESTIONS}
    for name in experiment_names():
        try:
            experiment = load_experiment(name)
            found[question_of(experiment)][name] = experiment.description
        except InputError as error:
            found[QUESTIONS[-1]][name] = error
    readers: dict[str, tuple[list[str], Callable[[str], str]]] = {
        "Topologies": (topology_names(), lambda name: load_topology(name).description),
        "Systems of programs": (system_names(), lambda name: load_system(name).description),
        "Suites": (suite_names(), lambda name: read_suite(name).suite.description),
    }
    described = {
        title: {name: _described(describe, name) for name in names}
        for title, (names, describe) in readers.items()
    }
    return {**{title: part for title, part in found.items() if part}, **described}


def question_of(experiment: "Experiment") -> str:
    """Return the question that an experiment answers, by what its runs vary and what goes wrong in them."""
    from experiments.faults.processes import ProcessFault

    links, processes, by_chance, systems, load = QUESTIONS
    if experiment.nemesis is not None:
        return by_chance
    if len({each.get("system") for each in experiment.variants.values()} - {None}) > 1:
        return systems
    if any(not isinstance(fault, ProcessFault) for fault in experiment.faults):
        return links
    if experiment.faults or experiment.arrivals or experiment.departures:
        return processes
    return load


def of_paper(document: str) -> Sections:
    """Return the experiments after papers whose names begin so, and the studies of the systems in them."""
    from experiments.campaigns.studies import listed_studies
    from experiments.loader import experiment_names, load_experiment

    experiments: dict[str, str | InputError] = {}
    for name in experiment_names():
        experiment = load_experiment(name)
        paper = experiment.paper
        if paper is not None and paper.document.startswith(document):
            figures = f", figures {', '.join(map(str, paper.figures))}" if paper.figures else ""
            place = f"section {paper.section}{figures}" if paper.section else paper.document
            experiments[name] = f"{place}: {experiment.description}"
    studies: dict[str, str | InputError] = dict(listed_studies(document))
    return {title: part for title, part in (("Experiments", experiments), ("Studies", studies)) if part}


def of_system(system: str) -> Sections:
    """Return what an experiment may say of a known system: roles, workloads, parameters with defaults."""
    from experiments.campaigns.sweep import value_text
    from experiments.parameters import parameters_schema

    declared = declared_by(system)
    parameters = parameters_schema(system)["properties"]
    return {
        "Roles (roles: {NAME: COUNT})": {role: ", ".join(traits) for role, traits in declared.roles.items()},
        "Workloads (workload: {kind: NAME})": dict.fromkeys(declared.workloads, ""),
        "Parameters and their defaults (parameters: {NAME: VALUE})": {
            name: value_text(schema["default"]) for name, schema in parameters.items()
        },
    }


def _described(describe: Callable[[str], str], name: str) -> str | InputError:
    try:
        return describe(name)
    except InputError as error:
        return error


def _digest() -> str:
    """Return a digest of the names and contents of all files that the list depends on."""
    digest = hashlib.sha256()
    for path in _deciding():
        try:
            content = Path(path).read_bytes()
        except OSError as error:  # the list reports it when it reads the file
            content = str(error).encode()
        digest.update(f"{path}\0{len(content)}\0".encode(errors="surrogateescape"))
        digest.update(content)
    return digest.hexdigest()


def _deciding() -> Iterator[str]:
    """Yield this file and those below the rooms of DECIDING, without linked folders (node_modules)."""
    yield __file__
    for room in DECIDING:
        for folder, folders, names in os.walk(PROJECT / room):
            folders[:] = sorted(set(folders) - {"__pycache__", "node_modules"})
            yield from (f"{folder}/{name}" for name in sorted(names))
