"""The JSON schema of experiment files: that of the model, with each system's parameters and roles."""

from typing import Any

from experiments.model import NONE, Experiment
from experiments.parameters import known_systems, parameters_schema
from topologies.json_schema import schema_of


def experiment_schema() -> dict[str, Any]:
    """Return the schema of an experiment file; the system determines the parameters."""
    schema = schema_of(Experiment)
    schema["properties"]["system"]["enum"] = known_systems()
    captures = schema["properties"]["captures"]
    description = captures.pop("description")
    schema["properties"]["captures"] = {"anyOf": [captures, {"const": NONE}], "description": description}
    schema["allOf"] = [_parameters_of(system) for system in known_systems()]
    return schema


def _parameters_of(system: str) -> dict[str, Any]:
    """Return the rule that a file with this system has these parameters."""
    return {
        "if": {"properties": {"system": {"const": system}}, "required": ["system"]},
        "then": {"properties": {"parameters": parameters_schema(system)}},
    }
