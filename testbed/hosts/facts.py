"""What an examined machine said of itself, and how its clock reads: plain data, checked where it comes in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from testbed.errors import TestbedError
from testbed.hosts.answers import Amount, Said, Seconds, read_answer


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A machine's clock minus ours. The truth is at most `error_ns` away: half a round trip."""

    offset_ns: int
    error_ns: int


@dataclass(frozen=True, slots=True)
class Attempts:
    """What was tried, and what was said if it failed: namespaces, netem in one, a VXLAN tunnel in one."""

    namespaces: Said | None
    netem: Said | None
    tunnel: Said | None


@dataclass(frozen=True, slots=True)
class Address:
    """An IPv4 address that a machine has."""

    interface: Said
    mtu: Amount
    up: bool


@dataclass(frozen=True, slots=True)
class Echo:
    """Whether another machine answered, to small packets and to those of the full size; round trips."""

    own: Said
    peer: Said
    small_s: Seconds | None
    large_s: Seconds | None


@dataclass(frozen=True, slots=True)
class Folder:
    """Where we may write. `versions` are the names of the archives that are unpacked there."""

    free_bytes: Amount
    versions: tuple[Said, ...]
    problem: Said | None


@dataclass(frozen=True, slots=True)
class RunFolder:
    """What a run has there. `state`: see `testbed.hosts.run_folders`."""

    name: Said
    bytes: Amount
    state: Said


@dataclass(frozen=True, slots=True)
class Facts:
    """The answer of `testbed.hosts.examination`."""

    python: Said
    abi: Said | None
    kernel: Said
    missing: tuple[Said, ...]
    attempts: Attempts
    addresses: Mapping[Said, Address]
    echoes: tuple[Echo, ...]
    port_holder: Said | None
    folder: Folder
    memory_bytes: Amount
    processors: Amount
    synchronised: bool | None
    runs: tuple[RunFolder, ...]


_FACTS = TypeAdapter(Facts)
_TIME = TypeAdapter(Amount)


def read_facts(line: bytes) -> Facts:
    """From the program's answer. Raises TestbedError if it is none."""
    facts = read_answer(_FACTS, line)
    if not {echo.own for echo in facts.echoes} <= facts.addresses.keys():
        raise TestbedError("its answer makes no sense: echoes from an address that it has not")
    return facts


def read_time_ns(line: bytes) -> int:
    """From a reading of the machine's clock. Raises TestbedError if it is none."""
    return read_answer(_TIME, line)


def best_reading(readings: Sequence[tuple[int, int, int]]) -> ClockReading:
    """From (asked, machine's clock, answered), ns: the one with the shortest round trip is the most exact.

    The machine read its clock somewhen between, so its offset lies within half the round trip of the middle.
    """
    asked, there, answered = min(readings, key=lambda reading: reading[2] - reading[0])
    return ClockReading(there - (asked + answered) // 2, (answered - asked + 1) // 2)
