"""`--set path=value`: overrides of an experiment file's fields before validation.

A path is dotted; an item of a list is named by its index or its `name` (`faults.cut.at=20s`). A value is YAML
(`roles={proxy: 1}`); `null` removes the field. The model checks whether the field exists.

`leaves` lists nested content by the same paths; items of lists are named by their name if they have one.
"""

import copy
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from topologies.document import Document, FieldPath, dotted, parse_document
from topologies.errors import InputError
from topologies.strict import suggestion

OVERRIDES_MAX = 200
PARTS_MAX = 10
_NAMES = ("name", "link", "between", "process")  # fields that name an item


def with_overrides(document: Document, overrides: Sequence[str]) -> Document:
    """Apply `path=value` texts in order. Raises InputError that names the override."""
    if len(overrides) > OVERRIDES_MAX:
        raise InputError("--set", None, "", f"given more than {OVERRIDES_MAX} times")
    for override in overrides:
        path, separator, text = override.partition("=")
        origin = f"--set {override}"
        if not separator or not path:
            raise InputError(origin, None, "", "should be path=value, such as workload.rate=50000/s")
        value = parse_document(origin, text).data if text.strip() else ""
        document = with_value(document, path, value, origin)
    return document


def with_value(document: Document, path: str, value: Any, origin: str) -> Document:
    """Replace the value at a dotted path, or remove it if None.

    origin: named in errors about the value. Raises InputError if the path does not exist.
    """
    parts = path.split(".")
    if len(parts) > PARTS_MAX or not all(parts):
        raise InputError(origin, None, path, "is not a path such as workload.rate")
    data = copy.deepcopy(document.data)
    holder: Any = data
    at: FieldPath = ()
    for part in parts[:-1]:
        key = _key(holder, part, at, origin)
        if isinstance(holder, dict):
            holder.setdefault(key, {})
        holder, at = holder[key], (*at, key)
    key = _key(holder, parts[-1], at, origin)
    if value is not None:
        holder[key] = value
    elif isinstance(holder, list) or key in holder:
        del holder[key]
    return replace(document, data=data, overridden={**document.overridden, (*at, key): origin})


def without_fields(document: Document, fields: Collection[str]) -> Document:
    """Remove top-level fields from the document."""
    if not isinstance(document.data, dict):  # validation reports it
        return document
    return replace(document, data={key: value for key, value in document.data.items() if key not in fields})


def _key(holder: Any, part: str, at: FieldPath, origin: str) -> Any:
    """Return the key or index that `part` means in `holder`."""
    if isinstance(holder, dict):
        return part
    if not isinstance(holder, list):
        raise InputError(origin, None, dotted((*at, part)), f"{dotted(at)} has no fields")
    names = [item.get("name") if isinstance(item, dict) else None for item in holder]
    if part in names:
        return names.index(part)
    if part.isascii() and part.isdigit() and int(part[:9]) < len(holder):
        return int(part)
    numbers = [str(number) for number in range(len(holder))]
    hint = suggestion(part, [name for name in names if isinstance(name, str)] or numbers)
    raise InputError(origin, None, dotted((*at, part)), f"there is no such item{hint}")


def leaves(content: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted paths and values, without null and empty ones; a list of plain values is one value."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(content, Sequence) and not isinstance(content, str) and _nested(content):
        for i, value in enumerate(content):
            yield from leaves(value, f"{path}.{_name(value, i)}")
    elif content not in (None, "", [], ()):
        yield path, content


def leaf_text(value: Any) -> str:
    """Return a leaf for users: text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _nested(content: Sequence[Any]) -> bool:
    return any(isinstance(value, Mapping) for value in content)


def _name(item: Any, index: int) -> str:
    """Return the name of a list item: its name, the link that it describes, or its index."""
    if isinstance(item, Mapping):
        for key in _NAMES:
            if isinstance(item.get(key), str):
                return str(item[key])
            if isinstance(item.get(key), Sequence) and item[key]:
                return "-".join(str(part) for part in item[key])
    return str(index)
