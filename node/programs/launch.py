"""What a minder is told of the program that it starts: `NodeSpec.program`, as the testbed writes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from node.core.program import Program


@dataclass(frozen=True, slots=True)
class Launch:
    """folder: the program's own, where it starts and its files lie. python_path: where programs find
    `cutset_client` and its modules. published, since: what the contract says of publishers' records, and from
    when on subscribers are to get events. traits: of its role. key_log: the file in which it is to log the
    keys of its TLS connections, if it is to. system: the folder of the system's file.
    """

    program: Program
    folder: Path
    python_path: str
    published: str
    since: str
    traits: frozenset[str]
    system: Path
    key_log: Path | None = None

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Raises KeyError or TypeError if this is none."""
        return cls(
            Program.from_json(given["program"]),
            Path(given["folder"]),
            given["python_path"],
            given["published"],
            given["since"],
            frozenset(given["traits"]),
            Path(given["system"]),
            Path(given["key_log"]) if given["key_log"] else None,
        )
