"""A system's own parameters, as an experiment file gives them and as the system takes them.

The system's `Parameters` dataclass is the only definition: a field's suffix says which quantity is written
in the file (`advertisement_period_us` is `advertisement_period: 1s`), no suffix means a plain value of the
field's type.
"""

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from experiments.declared import declared_by, known, known_systems
from node.core.declaration import Wait
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
    """The roles of a known system's processes, in the order in which hosts are made."""
    return tuple(declared_by(system).roles)


def roles_problem(system: str, counts: Mapping[str, int]) -> str | None:
    """Why a region of a known system cannot have so many processes of each role, or None."""
    return known(system).roles_problem(counts)


def waits(system: str, parameters: Mapping[str, Any]) -> tuple[Wait, ...]:
    """What no round trip may be longer than, with a known system's parameters, all of them."""
    return tuple(known(system).waits(parameters))


def event_limit_bytes(system: str, parameters: Mapping[str, Any]) -> int | None:
    """How large an event of a known system may be, with these parameters, all of them; None: any."""
    return known(system).event_limit_bytes(parameters)


def is_durable(system: str, parameters: Mapping[str, Any]) -> bool:
    """Whether what a known system acknowledged survives that all who have it lose power, with these
    parameters, all of them.
    """
    return known(system).is_durable(parameters)


def complete_parameters(system: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a known system, defaults included, by the dataclass's own names (with units).

    given: by the names that people write. Raises a problem that leads to the parameter at fault.
    """
    kind = known(system).parameters
    found = _complete(kind(), known(system).declared.name, given)
    for name in known(system).declared.ports:
        if not 0 < found[name] <= PORT_MAX:
            raise problem(f"should be a port, 1 to {PORT_MAX}, not {found[name]}", yaml_name(name))
    return found


def study_parameters(system: str, study: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a known system's study."""
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
    """The JSON schema of a known system's parameters, for completion in editors."""
    kind = known(system).parameters
    properties = {}
    for name, default in dataclasses.asdict(kind()).items():
        quantity = quantity_of(name)
        schema = quantity_schema(quantity) if quantity else _adapter(kind, name).json_schema()
        shown = quantity.format(default) if quantity else default
        properties[yaml_name(name)] = {**schema, "default": shown}
    return {"type": "object", "properties": properties, "additionalProperties": False}


@functools.cache
def _adapter(kind: type, field: str) -> TypeAdapter[Any]:
    """What checks values of a field of a dataclass; once for each, since hunts ask for thousands of cases."""
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
