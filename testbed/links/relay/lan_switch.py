"""LAN switching within the relay: a frame between two hosts of a region passes directly from link to link.

Without it, the frame would be written to the first link's end, forwarded by the region's bridge, and received
again for the second link, which is about half of its cost. The bridge has a fixed table and adds no delay
(`testbed.network.commands`), so the relay does the same: a frame that is due at the end of the first link
arrives at the second at the same instant. Both link directions treat and count it as if it had crossed the
bridge.

The bridge still forwards all other frames: to a gateway, to another machine, to all hosts, or from a host to
itself (which is how hosts are separated), and, after the first cut of a link towards its host, all frames
from and to that host. A port that is taken down receives no frames, and is up again shortly after the cut has
ended: only the bridge follows the state of ports.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from testbed.links.relay.ingress import Ingress
from testbed.links.relay.offload import VNET_BYTES

DESTINATION = slice(VNET_BYTES, VNET_BYTES + 6)  # MAC addresses in a frame (IEEE 802.3, 3.2.3)
SOURCE = slice(VNET_BYTES + 6, VNET_BYTES + 12)
TO_LAN, TO_HOST = "forward", "backward"


class LanSwitch:
    """The LANs of all regions, each a forwarding table from MAC address to the ingress towards that host."""

    def __init__(self, links: Iterable[Mapping[str, Any]], ingresses: Iterable[Ingress]) -> None:
        """links: as in the start order; those with `lan` and `mac` are switched."""
        self._ingresses = {(ingress.link, ingress.direction): ingress for ingress in ingresses}
        self._tables: dict[str, dict[bytes, Ingress]] = {}
        self._joined: dict[str, tuple[dict[bytes, Ingress], bytes]] = {}
        for link in links:
            both = {(link["name"], TO_LAN), (link["name"], TO_HOST)}
            if link["lan"] and both <= self._ingresses.keys():
                table = self._tables.setdefault(link["lan"], {})
                mac = bytes.fromhex(link["mac"].replace(":", ""))
                table[mac] = self._ingresses[link["name"], TO_HOST]
                self._ingresses[link["name"], TO_LAN].link_direction.lan_table = table
                self._joined[link["name"]] = table, mac

    def cut(self, ingress: Ingress) -> None:
        """If this ingress leads to a host, leave all frames from and to it to the bridge from now on."""
        if ingress.direction == TO_HOST and ingress.link in self._joined:
            table, mac = self._joined.pop(ingress.link)
            del table[mac]
            self._ingresses[ingress.link, TO_LAN].link_direction.lan_table = None
