"""A way from one machine of a run to another, as plain data."""

from dataclasses import dataclass


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
