"""What nested content holds, by dotted path, as `--set` names it: `workload.rate`, `faults.cut.at`.

Items of lists go by their name where they have one.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NAMES = ("name", "link", "between", "process")  # what an item goes by, if it has it


def leaves(content: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted paths and values; a list of plain values is one value. What is null or empty was not set."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(content, Sequence) and not isinstance(content, str) and _nested(content):
        for i, value in enumerate(content):
            yield from leaves(value, f"{path}.{_name(value, i)}")
    elif content not in (None, "", [], ()):
        yield path, content


def leaf_text(value: Any) -> str:
    """A leaf as people read it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _nested(content: Sequence[Any]) -> bool:
    return any(isinstance(value, Mapping) for value in content)


def _name(item: Any, index: int) -> str:
    """What an item of a list goes by: its name, the link that it is about, or its number."""
    if isinstance(item, Mapping):
        for key in _NAMES:
            if isinstance(item.get(key), str):
                return str(item[key])
            if isinstance(item.get(key), Sequence) and item[key]:
                return "-".join(str(part) for part in item[key])
    return str(index)
