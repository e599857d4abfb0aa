"""What became of a machine's files, and how far they are while they come."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Became(StrEnum):
    """Of a file. Only what both ends have the same SHA-256 of is whole."""

    WHOLE = "whole"
    PARTIAL = "partial"
    MISSING = "missing"


class State(StrEnum):
    """What goes on with a machine's files."""

    CONNECTING = "connecting"
    SHIPPING = "shipping"
    FOLLOWING = "up to date"
    CHECKING = "checking"
    WAITING = "trying again"
    SHIPPED = "shipped"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class ShippedFile:
    """A file of a machine. path: on it; place: in the run directory; of_bytes: its size there, as last
    told. changed: it should only grow, but bytes that had been shipped were others later, so it was shipped
    again.
    """

    path: str
    place: str
    became: Became
    bytes: int
    of_bytes: int
    changed: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Shipped:
    """What came of a machine. problem: why not all of it, "" if all did. wire_bytes: what it took."""

    machine: str
    files: tuple[ShippedFile, ...]
    problem: str
    connections: int
    wire_bytes: int

    @property
    def complete(self) -> bool:
        """Whether everything is here, and the same; a machine without any file has not said that."""
        return (
            not self.problem and bool(self.files) and all(file.became is Became.WHOLE for file in self.files)
        )

    @property
    def bytes(self) -> int:
        """What is here of its files."""
        return sum(file.bytes for file in self.files)

    def lines(self) -> list[str]:
        """What a reader must know: nothing if all is here and never changed."""
        lost = [file for file in self.files if file.became is not Became.WHOLE]
        said = [f"{self.machine}: {self.problem}"] if self.problem else []
        if self.problem and not self.files:
            said = [f"{self.machine}: nothing was shipped: {self.problem}"]
        said += [f"{self.machine}: {_described(file)}" for file in lost]
        return said + [
            f"{self.machine}: {file.path} changed after it was shipped, and was shipped again"
            for file in self.files
            if file.changed and file not in lost
        ]

    def as_json(self) -> dict[str, Any]:
        """For run.json."""
        return {
            "machine": self.machine,
            "complete": self.complete,
            "problem": self.problem,
            "bytes": self.bytes,
            "wire_bytes": self.wire_bytes,
            "connections": self.connections,
            "whole": sum(file.became is Became.WHOLE for file in self.files),
            "partial": [_file_json(file) for file in self.files if file.became is Became.PARTIAL],
            "missing": [_file_json(file) for file in self.files if file.became is Became.MISSING],
            "changed": [file.place for file in self.files if file.changed],
            "said": self.lines(),
        }


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a machine's files are. note: why it is tried again, or given up."""

    machine: str
    state: State
    bytes: int
    of_bytes: int
    wire_bytes: int
    files: int
    note: str = ""

    @property
    def left_bytes(self) -> int:
        """What is still there only, of what is known."""
        return max(0, self.of_bytes - self.bytes)

    def as_message(self) -> dict[str, Any]:
        """For whoever shows the run (`testbed.campaign.progress`)."""
        return {
            "did": "shipping",
            "machine": self.machine,
            "state": str(self.state),
            "bytes": self.bytes,
            "of_bytes": self.of_bytes,
            "wire_bytes": self.wire_bytes,
            "files": self.files,
            "note": self.note,
        }


def all_complete(shipped: Mapping[str, Shipped]) -> bool:
    """Whether everything of every machine is here."""
    return all(one.complete for one in shipped.values())


def _described(file: ShippedFile) -> str:
    note = f" ({file.note})" if file.note else ""
    if file.became is Became.MISSING:
        return f"{file.path} is missing, {file.of_bytes:,} bytes{note}"
    return f"{file.path}: {file.bytes:,} of {file.of_bytes:,} bytes came, not checked{note}"


def _file_json(file: ShippedFile) -> dict[str, Any]:
    return {"file": file.place, "bytes": file.bytes, "of_bytes": file.of_bytes, "note": file.note}
