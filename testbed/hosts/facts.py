"""What an examined machine said of itself, and how its clock reads: plain data, from `examination`'s JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.errors import TestbedError


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A machine's clock minus ours. The truth is at most `error_ns` away: half a round trip."""

    offset_ns: int
    error_ns: int


@dataclass(frozen=True, slots=True)
class Address:
    """An IPv4 address that a machine has."""

    interface: str
    mtu: int
    up: bool


@dataclass(frozen=True, slots=True)
class Echo:
    """Whether another machine answered, to small packets and to those of the full size; round trips."""

    own: str
    peer: str
    small_s: float | None
    large_s: float | None


@dataclass(frozen=True, slots=True)
class Folder:
    """Where we may write. `versions` are the names of the archives that are unpacked there."""

    free_bytes: int
    versions: tuple[str, ...]
    problem: str | None


@dataclass(frozen=True, slots=True)
class RunFolder:
    """What a run has there. `state`: see `testbed.hosts.run_folders`."""

    name: str
    bytes: int
    state: str


@dataclass(frozen=True, slots=True)
class Facts:
    """The answer of `testbed.hosts.examination`."""

    python: str
    abi: str | None
    kernel: str
    missing: tuple[str, ...]
    attempts: Mapping[str, str | None]
    addresses: Mapping[str, Address]
    echoes: tuple[Echo, ...]
    port_holder: str | None
    folder: Folder
    memory_bytes: int
    processors: int
    synchronised: bool | None
    runs: tuple[RunFolder, ...]


def read_facts(given: Mapping[str, Any]) -> Facts:
    """From JSON. Raises TestbedError if it is not what the program answers."""
    try:
        return Facts(
            python=str(given["python"]),
            abi=given["abi"],
            kernel=str(given["kernel"]),
            missing=tuple(given["missing"]),
            attempts=dict(given["attempts"]),
            addresses={address: Address(**fields) for address, fields in given["addresses"].items()},
            echoes=tuple(Echo(**fields) for fields in given["echoes"]),
            port_holder=given["port_holder"],
            folder=Folder(**{**given["folder"], "versions": tuple(given["folder"]["versions"])}),
            memory_bytes=int(given["memory_bytes"]),
            processors=int(given["processors"] or 1),
            synchronised=given["synchronised"],
            runs=tuple(RunFolder(**run) for run in given["runs"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TestbedError(f"the machine's answer makes no sense: {type(error).__name__}: {error}") from None


def best_reading(readings: Sequence[tuple[int, int, int]]) -> ClockReading:
    """From (asked, machine's clock, answered), ns: the one with the shortest round trip is the most exact.

    The machine read its clock somewhen between, so its offset lies within half the round trip of the middle.
    """
    asked, there, answered = min(readings, key=lambda reading: reading[2] - reading[0])
    return ClockReading(there - (asked + answered) // 2, (answered - asked + 1) // 2)
