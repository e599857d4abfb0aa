"""Which systems of programs ship, and what is a path of another one; quick to import."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

FOLDER = Path(__file__).parent
FILE = "system.yaml"
"""Of a system in a folder of its own."""


@cache
def shipped_systems() -> Mapping[str, Path]:
    """The files of the systems of programs that come with Cutset, by name; looked for once in a process.

    A folder may hold several that share templates and clients: nats/jetstream.yaml is nats-jetstream.
    """
    alone = {path.stem: path for path in FOLDER.glob("*.yaml")}
    housed = {
        path.parent.name if path.name == FILE else f"{path.parent.name}-{path.stem}": path
        for folder in {path.parent for path in FOLDER.glob(f"*/{FILE}")}
        for path in folder.glob("*.yaml")
    }
    return MappingProxyType(dict(sorted((alone | housed).items())))


def system_names() -> list[str]:
    """Their names."""
    return list(shipped_systems())


def is_path(name_or_path: str) -> bool:
    """Whether this names a file or a folder, and not a system."""
    return "/" in name_or_path or name_or_path.endswith((".yaml", ".yml"))
