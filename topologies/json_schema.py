"""JSON schemas of the files that users write, for completion and validation in editors.

They are generated from the models, then tidied: defaults get their units, and pydantic's internal keys are
removed. Only the loader checks constraints between several fields.
"""

from typing import Any

from pydantic import BaseModel

from topologies.generated.kinds import MODELS
from topologies.model import Topology
from topologies.quantities import BY_SUFFIX, FRACTION

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ABOUT_NUMBERS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "gt", "ge", "lt", "le"}
)


def topology_schema() -> dict[str, Any]:
    """Return the schema of a topology file: regions and links, or a kind with its parameters."""
    models: list[type[BaseModel]] = [Topology, *MODELS]
    schemas = [schema_of(model) for model in models]
    definitions = {name: part for schema in schemas for name, part in schema.pop("$defs", {}).items()}
    for model, schema in zip(models, schemas, strict=True):
        del schema["$schema"]
        definitions[model.__name__] = schema
    choices = [{"$ref": f"#/$defs/{model.__name__}"} for model in models]
    return {"$schema": DIALECT, "$defs": definitions, "oneOf": choices}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of files that this model reads."""
    schema: dict[str, Any] = _tidied(model.model_json_schema(mode="validation"))
    return {"$schema": DIALECT, **schema}


def _tidied(node: Any) -> Any:
    if isinstance(node, list):
        return [_tidied(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _tidied_below(key, value) for key, value in node.items() if not _is_noise(key, value)}
    return _as_written(_without_null(node))


def _tidied_below(key: str, value: Any) -> Any:
    """Tidy the value of a key; names of properties are not keywords."""
    if key in ("properties", "$defs"):
        return {name: _tidied(schema) for name, schema in value.items()}
    return value if key in ("default", "examples", "enum") else _tidied(value)


def _is_noise(key: str, value: Any) -> bool:
    return key == "title" or (key == "default" and value in (None, "", [], {}))


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """Replace `X or null` by X: an optional field is left out, not null."""
    choices = [choice for choice in node.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) != 1:
        return node
    return {**choices[0], **{key: value for key, value in node.items() if key != "anyOf"}}


def _as_written(node: dict[str, Any]) -> dict[str, Any]:
    """Adapt a quantity, which is text: remove bounds of numbers and give its default a unit."""
    quantity = next((q for q in (*BY_SUFFIX, FRACTION) if node.get("pattern") == q.pattern), None)
    if quantity is None:
        return node
    node = {key: value for key, value in node.items() if key not in ABOUT_NUMBERS}
    if isinstance(node.get("default"), (int, float)):
        node["default"] = quantity.format(node["default"])
    return node
