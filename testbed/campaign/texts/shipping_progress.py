"""Progress of files that are shipped from machines.

For each machine: how much has arrived and how much remains, and lines when shipping ends or breaks.
"""

from dataclasses import dataclass, field
from typing import Any

from testbed.machines.shipping.result import ShippingState

WORTH_WAITING_BYTES = 10**6
TELLING_STATES = frozenset({ShippingState.WAITING, ShippingState.SHIPPED, ShippingState.GIVEN_UP})
"""States that get a permanent line."""
QUIET_STATES = frozenset({ShippingState.FOLLOWING, ShippingState.SHIPPED})
"""States in which no file is awaited."""


@dataclass(slots=True)
class MachineFiles:
    """The progress of one machine's files."""

    machine: str
    state: ShippingState = ShippingState.CONNECTING
    bytes: int = 0
    of_bytes: int = 0

    def take(self, message: dict[str, Any]) -> str | None:
        """Update from a message of `ship`; return a permanent line, or None if the message needs none."""
        state = ShippingState(message["state"])
        changed, self.state = state is not self.state, state
        self.bytes, self.of_bytes = message["bytes"], message["of_bytes"]
        return self._line(message) if changed and state in TELLING_STATES else None

    def text(self, rate_bytes_per_s: float) -> str:
        """Return the progress in a few words. rate_bytes_per_s: of the last seconds."""
        here = f"{self.machine:<8} {self.state:<12}"
        if not self.of_bytes:
            return here
        here += f" {_mb(self.bytes):>7} of {_mb(self.of_bytes):>7} MB"
        left = self.of_bytes - self.bytes
        if self.state is not ShippingState.SHIPPING or rate_bytes_per_s <= 0 or left <= 0:
            return here
        return f"{here}  {_mb(rate_bytes_per_s):>6} MB/s  {left / rate_bytes_per_s:>4.0f} s left"

    def _line(self, message: dict[str, Any]) -> str:
        if self.state is ShippingState.SHIPPED:
            sent = f", sent as {_mb(message['wire_bytes'])} MB" if "wire_bytes" in message else ""
            return f"{self.machine}: all its files are here: {_mb(self.bytes)} MB{sent}"
        left = self.of_bytes - self.bytes
        known = f"; {_mb(left)} MB are left there" if self.of_bytes else ""
        return f"{self.machine}: {self.state}: {message['note'] or 'not all files arrived'}{known}"


@dataclass(slots=True)
class ShippingProgress:
    """The progress of all machines' files."""

    machines: dict[str, MachineFiles] = field(default_factory=dict)

    def take(self, message: dict[str, Any]) -> str | None:
        """Update the machine of the message; see MachineFiles."""
        name = message["machine"]
        return self.machines.setdefault(name, MachineFiles(name)).take(message)

    def text(self) -> str:
        """Return the files that are awaited in one line; "" if there are none."""
        return ", ".join(
            f"{files.machine} {files.state} {_mb(files.bytes)}/{_mb(files.of_bytes)} MB"
            for files in self.machines.values()
            if files.state not in QUIET_STATES and files.of_bytes - files.bytes >= WORTH_WAITING_BYTES
        )


def _mb(size_bytes: float) -> str:
    size_mb = size_bytes / 1e6
    return f"{size_mb:,.0f}" if size_mb >= 10 else f"{size_mb:.1f}"
