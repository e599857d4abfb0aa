"""The studies of all systems, and their parameters."""

from collections.abc import Iterator, Sequence
from typing import Any

from node.systems import studies_of, systems
from topologies.errors import InputError


def listed_studies(document: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield names and descriptions: of all studies, or of those after a paper of this name."""
    for system in systems():
        if document is not None and not document.startswith(system):
            continue
        for name, study in studies_of(system).items():
            yield name, study.description


def chosen_study(study: str, overrides: Sequence[str]) -> tuple[str, str, dict[str, Any]]:
    """Return system, name and all parameters of a study. overrides: `name=value`. Raises InputError."""
    import yaml  # noqa: PLC0415 - keeps listing quick
    from pydantic_core import PydanticCustomError  # noqa: PLC0415

    from experiments.parameters import study_parameters  # noqa: PLC0415
    from topologies.strict import suggestion  # noqa: PLC0415

    owners = {name: owner for owner in systems() for name in studies_of(owner)}
    if study not in owners:
        raise InputError("study", None, "", f"there is no study {study!r:.40}{suggestion(study, owners)}")
    given = {}
    for override in overrides:
        name, separator, text = override.partition("=")
        if not separator:
            raise InputError(f"--set {override}", None, "", "should be NAME=VALUE")
        try:
            given[name] = yaml.safe_load(text)
        except yaml.YAMLError:
            raise InputError(f"--set {override}", None, "", "the value is no YAML") from None
    try:
        return owners[study], study, study_parameters(owners[study], study, given)
    except PydanticCustomError as error:
        context = error.context or {}
        raise InputError("--set", None, ".".join(context.get("path", ())), context["message"]) from None
