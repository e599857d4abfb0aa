"""The systems of programs that ship with Cutset, and paths of others; quick to import."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

FOLDER = Path(__file__).parent
FILE = "system.yaml"
"""The file of a system that has a folder."""


@cache
def shipped_systems() -> Mapping[str, Path]:
    """Return the files of the systems of programs that come with Cutset, by name; cached.

    A folder may have several that share templates and clients: nats/jetstream.yaml is nats-jetstream.
    """
    alone = {path.stem: path for path in FOLDER.glob("*.yaml")}
    housed = {
        path.parent.name if path.name == FILE else f"{path.parent.name}-{path.stem}": path
        for folder in {path.parent for path in FOLDER.glob(f"*/{FILE}")}
        for path in folder.glob("*.yaml")
    }
    return MappingProxyType(dict(sorted((alone | housed).items())))


def system_names() -> list[str]:
    """Return the names of the systems that come with Cutset."""
    return list(shipped_systems())


def is_path(name_or_path: str) -> bool:
    """Return whether this is the path of a file or folder rather than a system's name."""
    return "/" in name_or_path or name_or_path.endswith((".yaml", ".yml"))
