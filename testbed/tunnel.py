"""Tunnels between the machines of a run: created in the machine's namespace, moved into the sandbox's.

A VXLAN device sends and receives in the namespace where it was created, wherever it is moved (ip-link(8)).
It ends with the sandbox's namespace, so nothing needs to be removed. Pure, except for `make_tunnels`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.batches import run_batch


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A VXLAN device (RFC 7348) to one other machine.

    `link` is a WAN link, or the name of a region's LAN between the two machines; `side` is this machine's
    end, as captures name it.
    """

    interface: str
    link: str
    side: str
    machine: str  # the other one
    local: str  # addresses in the experiment network
    remote: str
    network: int  # its VXLAN network identifier
    port: int  # UDP
    mtu_bytes: int


def make_tunnels(tunnels: Sequence[Tunnel], pid: int) -> None:
    """Create the tunnels for the network namespace of a process. Raises MachineError, TestbedError."""
    run_batch("ip", tunnel_lines(tunnels, pid), doing="making the tunnels to the other machines")


def tunnel_lines(tunnels: Sequence[Tunnel], pid: int) -> list[str]:
    """Return the tunnels as lines for `ip -batch`.

    Learning is off, because each device has one machine at its other end. Inner frames have their own
    checksums.
    """
    return [
        f"link add {tunnel.interface} netns {pid} mtu {tunnel.mtu_bytes} type vxlan id {tunnel.network}"
        f" local {tunnel.local} remote {tunnel.remote} dstport {tunnel.port} nolearning noudpcsum"
        for tunnel in tunnels
    ]
