"""What `cutset list` shows: the files that come with Cutset, with their descriptions. Experiments stand below
the question that they answer.

Files are parsed and not validated, which would take seconds; tests hold that they are valid.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.declared import declared_by
from topologies.errors import InputError

QUESTIONS = (
    "Experiments: what if a link fails?",
    "Experiments: what if processes fail, come or go?",
    "Experiments: what if anything fails, by chance?",
    "Experiments: how do systems compare?",
    "Experiments: what do load, size and settings change?",
)

Sections = Mapping[str, Mapping[str, str]]
"""By title and name: the description of a file."""


def sections() -> Sections:
    """Return all files that come with Cutset. Raises InputError if one is no YAML."""
    from experiments.suite import FOLDER as SUITES
    from systems.names import shipped_systems
    from topologies.loader import FOLDER as TOPOLOGIES

    found: dict[str, dict[str, str]] = {question: {} for question in QUESTIONS}
    for name, content in _experiments().items():
        found[question_of(content)][name] = _description(content)
    folders = {
        "Topologies": _files(TOPOLOGIES),
        "Systems of programs": shipped_systems(),
        "Suites": _files(SUITES),
    }
    described = {
        title: {name: _description(_content(path)) for name, path in files.items()}
        for title, files in folders.items()
    }
    return {**{title: part for title, part in found.items() if part}, **described}


def question_of(experiment: Mapping[str, Any]) -> str:
    """Return the question that an experiment answers, by what its runs vary and what goes wrong in them."""
    from experiments.faults.kinds import KINDS
    from experiments.faults.processes import ProcessFault

    links, processes, by_chance, systems, load = QUESTIONS
    of_processes = {name for name, kind in KINDS.items() if issubclass(kind, ProcessFault)}
    faults = experiment.get("faults") or ()
    if experiment.get("nemesis"):
        return by_chance
    if len({each.get("system") for each in (experiment.get("variants") or {}).values()} - {None}) > 1:
        return systems
    if any(of_processes.isdisjoint(fault) for fault in faults):
        return links
    if faults or experiment.get("arrivals") or experiment.get("departures"):
        return processes
    return load


def of_paper(document: str) -> Sections:
    """Return the experiments after papers whose names begin so, and the studies of the systems in them."""
    from experiments.campaigns.studies import listed_studies

    experiments = {}
    for name, content in _experiments().items():
        paper = content.get("paper") or {}
        if str(paper.get("document", "")).startswith(document):
            figures = f", figures {', '.join(map(str, paper['figures']))}" if paper.get("figures") else ""
            place = f"section {paper['section']}{figures}" if paper.get("section") else paper["document"]
            experiments[name] = f"{place}: {_description(content)}"
    studies = dict(listed_studies(document))
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


def _experiments() -> dict[str, Mapping[str, Any]]:
    from experiments.loader import FOLDER

    return {name: _content(path) for name, path in _files(FOLDER).items()}


def _files(folder: Path) -> dict[str, Path]:
    from topologies.document import files_in

    return {path.stem: path for path in files_in(folder)}


def _content(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        content = yaml.load(path.read_bytes(), yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise InputError(str(path), None, "", f"is no YAML: {' '.join(str(error).split())}") from None
    return content if isinstance(content, dict) else {}


def _description(content: Mapping[str, Any]) -> str:
    return " ".join(str(content.get("description", "")).split())
