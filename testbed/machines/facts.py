"""The facts about an examined machine and the readings of its clock: plain data, validated on arrival.

A machine may run any software, so its answers are not trusted: their text is sanitized before it reaches a
terminal. The module also builds the request, from what a run needs of a machine.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from experiments.files.sanitize import sanitize
from testbed.errors import TestbedError
from testbed.links.selection import TRY, TRY_TOOLS
from testbed.machines.inventory import Inventory, InventoryMachine
from testbed.machines.placement import VXLAN_OVERHEAD_BYTES
from testbed.machines.ssh.ssh import SshConnection
from testbed.sandbox.commands import sandbox_command
from testbed.sandbox.requirements import RUN_TOOLS
from topologies.link_parameters import LinkParameters

SanitizedText = Annotated[str, AfterValidator(sanitize)]
"""Sanitized text, which can be shown."""
Amount = Annotated[int, Field(ge=0, lt=1 << 63)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]

SAID_CHARACTERS_MAX = 300
"""The end of a failed program's error output that is reported."""

_Answer = TypeVar("_Answer")


def read_answer(kind: TypeAdapter[_Answer], line: bytes) -> _Answer:
    """Parse a line of the program's answer. Raises TestbedError if it is invalid."""
    try:
        return kind.validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise TestbedError(
            sanitize(f"its answer is invalid: {where + ': ' if where else ''}{first['msg']}")
        ) from None


def ask(
    connection: SshConnection,
    command: list[str],
    request: Any,
    kind: TypeAdapter[_Answer],
    *,
    timeout_s: float,
    doing: str,
) -> _Answer:
    """Run a program as root that answers one request; both are lines of JSON.

    doing: for its error. Raises TestbedError if it fails or answers nonsense.
    """
    name, data = connection.machine.name, json.dumps(request).encode() + b"\n"
    done = connection.run(command, data=data, timeout_s=timeout_s, root=True)
    if done.code != 0:
        raise TestbedError(f"{name}: cannot {doing}: {done.why[-SAID_CHARACTERS_MAX:]}")
    try:
        return read_answer(kind, done.stdout)
    except TestbedError as error:
        raise TestbedError(f"{name}: {error}") from None


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The offset of a machine's clock from ours. The error is at most `error_ns`: half a round trip."""

    offset_ns: int
    error_ns: int


@dataclass(frozen=True, slots=True)
class Attempts:
    """The errors of attempts, None for success: namespaces, netem in one, a VXLAN tunnel in one."""

    namespaces: SanitizedText | None
    netem: SanitizedText | None
    tunnel: SanitizedText | None


@dataclass(frozen=True, slots=True)
class Address:
    """An IPv4 address of a machine."""

    interface: SanitizedText
    mtu: Amount
    up: bool


@dataclass(frozen=True, slots=True)
class Echo:
    """Round trips of small and full-sized packets to another machine; None without an answer."""

    own: SanitizedText
    peer: SanitizedText
    small_s: Seconds | None
    large_s: Seconds | None


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder where we may write. `versions` are the names of the archives unpacked there."""

    free_bytes: Amount
    versions: tuple[SanitizedText, ...]
    problem: SanitizedText | None


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of a run. `state`: see `testbed.machines.run_folders`."""

    name: SanitizedText
    bytes: Amount
    state: SanitizedText


@dataclass(frozen=True, slots=True)
class Facts:
    """The answer of `testbed.machines.examination`."""

    python: SanitizedText
    abi: SanitizedText | None
    kernel: SanitizedText
    missing: tuple[SanitizedText, ...]
    attempts: Attempts
    addresses: Mapping[SanitizedText, Address]
    echoes: tuple[Echo, ...]
    port_holder: SanitizedText | None
    folder: Folder
    memory_bytes: Amount
    processors: Amount
    synchronised: bool | None
    runs: tuple[RunFolder, ...]


_FACTS = TypeAdapter(Facts)
_TIME = TypeAdapter(Amount)


def read_facts(line: bytes) -> Facts:
    """Parse the program's answer. Raises TestbedError if it is malformed."""
    facts = read_answer(_FACTS, line)
    if not {echo.own for echo in facts.echoes} <= facts.addresses.keys():
        raise TestbedError("its answer is invalid: echoes from an address that it does not have")
    return facts


def read_time_ns(line: bytes) -> int:
    """Parse a reading of the machine's clock. Raises TestbedError if it is malformed."""
    return read_answer(_TIME, line)


def best_reading(readings: Sequence[tuple[int, int, int]]) -> ClockReading:
    """Return the most exact of (request, machine's clock, answer), ns: that with the shortest round trip.

    The machine read its clock between request and answer, so the error of its offset is at most half the
    round trip.
    """
    asked, there, answered = min(readings, key=lambda reading: reading[2] - reading[0])
    return ClockReading(there - (asked + answered) // 2, (answered - asked + 1) // 2)


MACHINE_TOOLS = {**RUN_TOOLS, **TRY_TOOLS}
"""Programs, and their Debian packages."""
PROBE_BYTES = LinkParameters().mtu_bytes + VXLAN_OVERHEAD_BYTES
"""The largest packets that links of the default MTU send through the experiment network."""


def request(inventory: Inventory, machine: InventoryMachine) -> dict[str, Any]:
    """Return the request for a machine (`testbed.machines.examination`)."""
    tunnel = ["ip", "link", "add", "name", "cutset-try", "type", "vxlan", "id", "1"]
    ends = ["local", "192.0.2.1", "remote", "192.0.2.2", "dstport", str(inventory.vxlan_port)]
    attempts = {"namespaces": ["true"], "netem": list(TRY), "tunnel": [*tunnel, *ends]}  # see facts.Attempts
    return {
        "tools": sorted(MACHINE_TOOLS),
        "folder": machine.folder,
        "port": inventory.vxlan_port,
        "peers": peers(inventory, machine),
        "probe_bytes": PROBE_BYTES,
        "attempts": {
            name: sandbox_command(command, user_namespace=False) for name, command in attempts.items()
        },
    }


def peers(inventory: Inventory, machine: InventoryMachine) -> list[tuple[str, str]]:
    """Return pairs of an own address and another machine's that must be able to reach each other."""
    pairs = {
        (machine.address(link), other.address(link)): None
        for other in inventory.machines
        if other.name != machine.name
        for link in _networks(machine, other)
    }
    return [(own, peer) for own, peer in pairs if own is not None and peer is not None]


def _networks(one: InventoryMachine, other: InventoryMachine) -> list[str]:
    """Return the links with their own networks to which both machines belong; "" is the shared network."""
    return [*(link for link in one.links if link in other.links), ""]
