"""The interface of a link emulator, which netem and the relay implement.

An emulated link is wired veth - emulator - veth. The emulator joins two interfaces of the sandbox's root
namespace and delays, drops and paces frames in each direction. Taking interfaces down (`LinkState.DOWN`) is
the network's work (`testbed.network`); an emulator only has to survive it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from experiments.planned.changes import LinkDirectionName
from experiments.records.observations import LinkCounters
from testbed.links.wiring import LinkWiring
from topologies.link_parameters import LinkParameters


@dataclass(frozen=True, slots=True)
class Applied:
    """When a change was requested and when it was in effect, CLOCK_REALTIME nanoseconds."""

    requested_ns: int
    applied_ns: int


@dataclass(frozen=True, slots=True)
class SelectedPackets:
    """IPv4 packets from or to an address, from or to a TCP or UDP port, or both."""

    address: str | None
    port: int | None


class LinkEmulator(Protocol):
    """Emulates all links of a run."""

    kind: str  # "relay" | "netem"

    def start(self, wirings: Sequence[LinkWiring]) -> None:
        """Start emulating every link, in state up. Raises MachineError, TestbedError."""

    def change(
        self,
        link: str,
        direction: LinkDirectionName,
        parameters: LinkParameters,
        *,
        blackhole: bool,
        selects: SelectedPackets | None = None,
    ) -> Applied:
        """Change one direction while frames cross it; `blackhole` drops all frames, also those in flight.

        selects: the packets that it is for, which cross the link beside the others from the first such change
        on; only the relay does so (`testbed.links.abilities`). Raises TestbedError if the link is unknown or
        the emulator has failed.
        """

    def begin_traces(self, zero_ns: int) -> None:
        """Let links follow their traces, which begin at `zero_ns`, CLOCK_REALTIME. Raises TestbedError."""

    def counters(self) -> Mapping[tuple[str, LinkDirectionName], LinkCounters]:
        """Return the counters of every direction that is emulated on this machine."""

    def failure(self) -> str | None:
        """Return why the emulator failed (for example, the relay died), or None."""

    def stop(self) -> None:
        """Release everything; idempotent."""
