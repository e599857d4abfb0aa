"""A system's own parameters, in the form of an experiment file and in the form of the system.

The system's `Parameters` dataclass is the only definition: a field's suffix determines the quantity in the
file (`advertisement_period_us` is `advertisement_period: 1s`); a field without a suffix is a plain value of
its type.
"""

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from experiments.declared import declared_by, known_system, known_systems
from node.core.declaration import ReplyTimeout
from node.systems import studies_of
from topologies.quantities import QuantityError, quantity_of, yaml_name
from topologies.strict import problem, quantity_schema, suggestion

PORT_MAX = 65_535

__all__ = [
    "complete_parameters",
    "event_limit_bytes",
    "is_durable",
    "known_systems",
    "parameters_schema",
    "roles_of",
    "roles_problem",
    "study_parameters",
    "waits",
]


def roles_of(system: str) -> tuple[str, ...]:
    """Return the roles of a known system's processes, in the order in which hosts are made."""
    return tuple(declared_by(system).roles)


def roles_problem(system: str, counts: Mapping[str, int]) -> str | None:
    """Return why a region of a known system cannot have these counts of processes by role, or None."""
    return known_system(system).roles_problem(counts)


def waits(system: str, parameters: Mapping[str, Any]) -> tuple[ReplyTimeout, ...]:
    """Return the timeouts of a known system that every round trip must stay below. parameters: all."""
    return tuple(known_system(system).waits(parameters))


def event_limit_bytes(system: str, parameters: Mapping[str, Any]) -> int | None:
    """Return the largest event size of a known system, or None for no limit. parameters: all."""
    return known_system(system).event_limit_bytes(parameters)


def is_durable(system: str, parameters: Mapping[str, Any]) -> bool:
    """Return whether acknowledged data survives a power loss of all processes that hold it.

    parameters: all of the known system's.
    """
    return known_system(system).is_durable(parameters)


def complete_parameters(system: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a known system, defaults included, by the dataclass's names (with units).

    given: by the names in files. Raises a problem with the path of the wrong parameter.
    """
    kind = known_system(system).parameters
    found = _complete(kind(), known_system(system).declared.name, given)
    for name in known_system(system).declared.ports:
        if not 0 < found[name] <= PORT_MAX:
            raise problem(f"should be a port, 1 to {PORT_MAX}, not {found[name]}", yaml_name(name))
    return found


def study_parameters(system: str, study: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a study, as `complete_parameters` does for a system."""
    return _complete(studies_of(system)[study].parameters, study, given)


def _complete(defaults: Any, of: str, given: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name: yaml_name(field.name) for field in dataclasses.fields(defaults)}
    fields = {name: field for field, name in names.items()}
    values = {}
    for name, value in given.items():
        if name not in fields:
            raise problem(f"{of} has no such parameter{suggestion(name, fields)}", name)
        values[fields[name]] = _value(name, type(defaults), fields[name], value)
    try:
        return dataclasses.asdict(dataclasses.replace(defaults, **values))
    except ValueError as error:  # the system's own rules; its messages begin with the field's name
        text = re.sub(r"\w+", lambda word: names.get(word[0], word[0]), str(error))
        name, _, rest = text.partition(" ")
        raise problem(rest if name in fields else text, *([name] if name in fields else [])) from None


def parameters_schema(system: str) -> dict[str, Any]:
    """Return the JSON schema of a known system's parameters, for completion in editors."""
    kind = known_system(system).parameters
    properties = {}
    for name, default in dataclasses.asdict(kind()).items():
        quantity = quantity_of(name)
        schema = quantity_schema(quantity) if quantity else _adapter(kind, name).json_schema()
        shown = quantity.format(default) if quantity else default
        properties[yaml_name(name)] = {**schema, "default": shown}
    return {"type": "object", "properties": properties, "additionalProperties": False}


@functools.cache
def _adapter(kind: type, field: str) -> TypeAdapter[Any]:
    """Return the validator of a dataclass field; cached, since hunts validate thousands of cases."""

    return TypeAdapter(_types(kind)[field])


@functools.cache
def _types(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(name: str, kind: type, field: str, value: Any) -> Any:
    try:
        if quantity := quantity_of(field):
            return quantity.parse(value)
        return _adapter(kind, field).validate_python(value, strict=True)
    except QuantityError as error:
        raise problem(str(error), name) from None
    except ValidationError as error:
        raise problem(f"{error.errors()[0]['msg'].removeprefix('Input ')}, not {value!r:.40}", name) from None
