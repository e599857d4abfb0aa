"""Launch parameters of a program for its minder: `NodeSpec.program`, as the testbed writes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from node.core.program import Program


@dataclass(frozen=True, slots=True)
class Launch:
    """Launch parameters of a program. folder: its own, in which it starts and its files are. python_path:
    where programs find `cutset_client` and its modules. published, since: the contract's meaning of
    publishers' records, and from when on subscribers must receive events. traits: of its role. key_log: the
    file to which it must log the keys of its TLS connections; None: it need not. system: the folder of the
    system's file. image_root: the files of its image. keeps_owners: whether these have the image's
    owners, as which it may run.
    """

    program: Program
    folder: Path
    python_path: str
    published: str
    since: str
    traits: frozenset[str]
    system: Path
    key_log: Path | None = None
    image_root: Path | None = None
    keeps_owners: bool = False

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Parse the JSON object. Raises KeyError or TypeError on invalid input."""
        return cls(
            Program.from_json(given["program"]),
            Path(given["folder"]),
            given["python_path"],
            given["published"],
            given["since"],
            frozenset(given["traits"]),
            Path(given["system"]),
            Path(given["key_log"]) if given["key_log"] else None,
            Path(given["image_root"]) if given["image_root"] else None,
            given["keeps_owners"],
        )
