"""The results of shipping a machine's files."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from experiments.records.observations import Shipment, UnshippedFile


class FileOutcome(StrEnum):
    """The outcome of a file. A file is whole if it has the same SHA-256 at both ends."""

    WHOLE = "whole"
    PARTIAL = "partial"
    MISSING = "missing"


class ShippingState(StrEnum):
    """The state of a machine's shipping."""

    CONNECTING = "connecting"
    SHIPPING = "shipping"
    FOLLOWING = "up to date"
    CHECKING = "checking"
    WAITING = "trying again"
    SHIPPED = "shipped"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class ShippedFile:
    """A file of a machine.

    path: on the machine; place: in the run directory; of_bytes: its last reported size on the machine.
    changed: the file should only grow, but bytes that had been shipped changed, so it was shipped again.
    """

    path: str
    place: str
    became: FileOutcome
    bytes: int
    of_bytes: int
    changed: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class ShippingResult:
    """The result of a machine.

    problem: why not all files arrived, empty if they did. wire_bytes: the number of bytes received.
    """

    machine: str
    problem: str
    files: tuple[ShippedFile, ...] = ()
    connections: int = 0
    wire_bytes: int = 0

    @property
    def complete(self) -> bool:
        """Whether all files arrived unaltered; false for a machine that never listed its files."""
        return (
            not self.problem
            and bool(self.files)
            and all(file.became is FileOutcome.WHOLE for file in self.files)
        )

    @property
    def bytes(self) -> int:
        """The number of bytes of its files that arrived."""
        return sum(file.bytes for file in self.files)

    def lines(self) -> list[str]:
        """Return messages for the user: none if all files arrived and never changed."""
        lost = [file for file in self.files if file.became is not FileOutcome.WHOLE]
        messages = [f"{self.machine}: {self.problem}"] if self.problem else []
        if self.problem and not self.files:
            messages = [f"{self.machine}: nothing was shipped: {self.problem}"]
        messages += [f"{self.machine}: {_described(file)}" for file in lost]
        return messages + [
            f"{self.machine}: {file.path} changed here or there after it was shipped: shipped again"
            for file in self.files
            if file.changed and file not in lost
        ]

    def shipment(self) -> Shipment:
        """Return the entry of the run's record."""
        return Shipment(
            machine=self.machine,
            complete=self.complete,
            problem=self.problem,
            bytes=self.bytes,
            wire_bytes=self.wire_bytes,
            connections=self.connections,
            whole=sum(file.became is FileOutcome.WHOLE for file in self.files),
            partial=tuple(_unshipped(file) for file in self.files if file.became is FileOutcome.PARTIAL),
            missing=tuple(_unshipped(file) for file in self.files if file.became is FileOutcome.MISSING),
            changed=tuple(file.place for file in self.files if file.changed),
            said=tuple(self.lines()),
        )


def all_complete(shipped: Mapping[str, ShippingResult]) -> bool:
    """Return whether all files of every machine have arrived."""
    return all(one.complete for one in shipped.values())


def _described(file: ShippedFile) -> str:
    note = f" ({file.note})" if file.note else ""
    if file.became is FileOutcome.MISSING:
        return f"{file.path} is missing, {file.of_bytes:,} bytes{note}"
    return f"{file.path}: {file.bytes:,} of {file.of_bytes:,} bytes arrived, not verified{note}"


def _unshipped(file: ShippedFile) -> UnshippedFile:
    return UnshippedFile(file.place, file.bytes, file.of_bytes, file.note)
