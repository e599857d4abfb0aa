"""Which systems of programs ship, and what is a path of another one; quick to import."""

from pathlib import Path

FOLDER = Path(__file__).parent
FILE = "system.yaml"
"""Of a system in a folder of its own."""


def system_names() -> list[str]:
    """The names of the systems of programs that come with Cutset."""
    folders = [path.parent.name for path in FOLDER.glob(f"*/{FILE}")]
    return sorted([*folders, *(path.stem for path in FOLDER.glob("*.yaml"))])


def is_path(name_or_path: str) -> bool:
    """Whether this names a file or a folder, and not a system."""
    return "/" in name_or_path or name_or_path.endswith((".yaml", ".yml"))
