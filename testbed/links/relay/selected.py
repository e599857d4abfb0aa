"""Which frames a fault selects: IPv4 packets from or to an address, or from or to a TCP or UDP port.

A later fragment of a packet has no port.
"""

from collections.abc import Callable
from ipaddress import IPv4Address

from testbed.links.relay.offload import VNET_BYTES
from topologies.link_parameters import ETHERNET_BYTES

_ETHERTYPE = slice(VNET_BYTES + 12, VNET_BYTES + 14)
_IPV4 = b"\x08\x00"
_IP = VNET_BYTES + ETHERNET_BYTES
_SOURCE, _DESTINATION = slice(_IP + 12, _IP + 16), slice(_IP + 16, _IP + 20)
_HEADER_BYTES_MIN = 20
_WITH_PORTS = (6, 17)


def selector(address: str | None, port: int | None) -> Callable[[bytes], bool]:
    """Return the function that decides for a frame (vnet header first) whether it is selected."""
    wanted = None if address is None else IPv4Address(address).packed
    number = None if port is None else port.to_bytes(2, "big")

    def matches(frame: bytes) -> bool:
        if frame[_ETHERTYPE] != _IPV4 or len(frame) < _IP + _HEADER_BYTES_MIN:
            return False
        if wanted is not None and wanted not in {frame[_SOURCE], frame[_DESTINATION]}:
            return False
        if number is None:
            return True
        if frame[_IP + 9] not in _WITH_PORTS or frame[_IP + 7] or frame[_IP + 6] & 0x1F:
            return False
        at = _IP + (frame[_IP] & 0x0F) * 4
        return number in {frame[at : at + 2], frame[at + 2 : at + 4]}

    return matches
