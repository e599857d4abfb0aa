"""The studies of all systems, and their parameters."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from experiments.backend_names import SIMULATOR
from node.systems import studies_of, systems
from topologies.errors import InputError
from topologies.quantities import quantity_of, yaml_name

if TYPE_CHECKING:
    from experiments.campaigns.studydir import StudyRecord
    from experiments.loader import ExperimentFile
    from node.core.declaration import Study

StudyPlan = tuple[str, str, dict[str, Any]]
"""System, study and all of its parameters."""


def listed_studies(document: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield names and descriptions: of all studies, or of those after a paper of this name."""
    for system in systems():
        if document is not None and not document.startswith(system):
            continue
        for name, study in studies_of(system).items():
            yield name, study.description


def chosen_study(study: str, overrides: Sequence[str]) -> StudyPlan:
    """Return the plan of a study. overrides: `name=value`. Raises InputError."""
    from topologies.strict import suggestion  # noqa: PLC0415 - keeps listing quick

    owners = {name: owner for owner in systems() for name in studies_of(owner)}
    if study not in owners:
        raise InputError("study", None, "", f"there is no study {study!r:.40}{suggestion(study, owners)}")
    return _plan(owners[study], study, _values(overrides))


def planned_studies(document: str | None, overrides: Sequence[str]) -> list[StudyPlan]:
    """Return the plans of all points of all studies, or of those after a paper of this name.

    overrides: `name=value`, for each study that has the parameter. Raises InputError.
    """
    given = _values(overrides)
    plans: list[StudyPlan] = []
    for owner, name, study in _studies_after(document):
        mine = {key: value for key, value in given.items() if key in _parameters(study)}
        for point in study.points:
            plan = _plan(owner, name, {**point, **mine})
            if plan not in plans:
                plans.append(plan)
    return plans


def settings_of_lists(document: str | None, overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return which overrides are of studies, and which of experiments, for a list of both after a paper.

    One that both have, as `duration=20s`, is of both. Raises InputError if neither has it.
    """
    from experiments.model import Experiment  # noqa: PLC0415 - keeps listing quick

    after = [study for _, _, study in _studies_after(document)]
    has_sweeps = bool(planned_sweeps(document, ()))
    studies, experiments = list[str](), list[str]()
    for override in overrides:
        name = override.partition("=")[0]
        is_study = any(name in _parameters(study) for study in after)
        is_experiment = name.partition(".")[0] in map(yaml_name, Experiment.model_fields)
        if is_study:
            studies.append(override)
        if is_experiment and has_sweeps:
            experiments.append(override)
        if is_experiment and not is_study and not has_sweeps:
            raise InputError(f"--set {override}", None, "", f"no experiment has figures of {document}")
        if not is_study and not is_experiment:
            problem = "neither the studies nor the experiments have it"
            raise InputError("--set", None, name, problem)
    return studies, experiments


def _studies_after(document: str | None) -> "Iterator[tuple[str, str, Study]]":
    """Yield system, name and study."""
    names = {name for name, _ in listed_studies(document)}
    for owner in systems():
        for name, study in studies_of(owner).items():
            if name in names:
                yield owner, name, study


def _parameters(study: "Study") -> set[str]:
    return {yaml_name(field.name) for field in fields(study.parameters)}


def planned_sweeps(document: str | None, overrides: Sequence[str]) -> "list[ExperimentFile]":
    """Return the experiments that reproduce figures of papers, those in virtual time first.

    document: how a paper's name begins; None for all. overrides: as for `--set` of a run, for each. Raises
    InputError.
    """
    from experiments.loader import experiment_names, read_experiment  # noqa: PLC0415 - keeps listing quick

    files = (read_experiment(name) for name in experiment_names())
    chosen = [
        read_experiment(file.experiment.name, overrides)
        for file in files
        if (paper := file.experiment.paper) and paper.figures and paper.document.startswith(document or "")
    ]
    return sorted(chosen, key=lambda file: file.experiment.on != SIMULATOR)


def _values(overrides: Sequence[str]) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 - keeps listing quick

    given = {}
    for override in overrides:
        name, separator, text = override.partition("=")
        if not separator:
            raise InputError(f"--set {override}", None, "", "should be NAME=VALUE")
        try:
            given[name] = yaml.safe_load(text)
        except yaml.YAMLError:
            raise InputError(f"--set {override}", None, "", "the value is no YAML") from None
    return given


def check_study(record: "StudyRecord", file: object) -> None:
    """Check that a study.json names a study and its parameters. Raises InputError."""
    if record.system not in systems() or record.study not in studies_of(record.system):
        raise InputError(str(file), None, "study", f"{record.system:.40} has no study {record.study:.40}")
    given = dict(record.parameters)
    for name, value in record.parameters.items():
        quantity = quantity_of(name)
        if quantity is not None and type(value) in {int, float}:
            given[name] = quantity.format(value)
    named = {yaml_name(name): value for name, value in given.items()}
    _plan(record.system, record.study, named, str(file), ("parameters",))


def _plan(
    owner: str, study: str, given: dict[str, Any], origin: str = "--set", inside: tuple[str, ...] = ()
) -> StudyPlan:
    from pydantic_core import PydanticCustomError  # noqa: PLC0415 - keeps listing quick

    from experiments.parameters import study_parameters  # noqa: PLC0415

    try:
        return owner, study, study_parameters(owner, study, given)
    except PydanticCustomError as error:
        context = error.context or {}
        path = ".".join((*inside, *context.get("path", ())))
        raise InputError(origin, None, path, context["message"]) from None
