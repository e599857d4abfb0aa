"""A tunnel from one machine of a run to another: made in the machine's own namespace, put into the sandbox's.

A VXLAN device sends and receives in the namespace where it was made, wherever it is afterwards (ip-link(8)).
It ends with the sandbox's namespace, so there is nothing to remove. Pure, but for `make_tunnels`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.batches import run_batch


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A VXLAN device (RFC 7348) to one other machine. `link` is a WAN link, or what a region's LAN is called
    between the two machines; `side` is this machine's end of it, as captures name it.
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
    """Make them for the network namespace of a process. Raises MachineError, TestbedError."""
    run_batch("ip", tunnel_lines(tunnels, pid), doing="making the tunnels to the other machines")


def tunnel_lines(tunnels: Sequence[Tunnel], pid: int) -> list[str]:
    """For `ip -batch`. Nothing is learned, since each has one machine at its other end; the frames inside
    have their own checksums.
    """
    return [
        f"link add {tunnel.interface} netns {pid} mtu {tunnel.mtu_bytes} type vxlan id {tunnel.network}"
        f" local {tunnel.local} remote {tunnel.remote} dstport {tunnel.port} nolearning noudpcsum"
        for tunnel in tunnels
    ]
