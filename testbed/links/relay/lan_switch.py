"""The switch of a LAN within the relay: a frame between two hosts of a region stays here from link to link.

Otherwise it would be written to the first link's end, passed on by the region's bridge, and received again
for the second: about half of what it costs. The bridge has a fixed table and takes no time of its own
(`testbed.network.commands`), so the relay can do the same: a frame that is due at the end of the first link
arrives at the second at that very instant. Both lanes treat and count it as they do without.

The bridge still passes on all else: what goes to a gateway, to another machine, to everybody, or from a host
to itself (so are hosts kept apart), and, from the first cut of a link towards its host on, all from and to
that host. A port that is taken down hears nothing either, and is up again a little after the cut has ended:
how ports are is the bridge's business.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from testbed.links.relay.segments import VNET_BYTES
from testbed.links.relay.way import Way

DESTINATION = slice(VNET_BYTES, VNET_BYTES + 6)  # MAC addresses in a frame (IEEE 802.3, 3.2.3)
SOURCE = slice(VNET_BYTES + 6, VNET_BYTES + 12)
TO_LAN, TO_HOST = "forward", "backward"


class LanSwitch:
    """The LANs of all regions, each a table of the ways to its hosts by their addresses."""

    def __init__(self, links: Iterable[Mapping[str, Any]], ways: Iterable[Way]) -> None:
        """Join the lanes of links that the order to start gives as `lan` and `mac`."""
        self._ways = {(way.link, way.direction): way for way in ways}
        self._tables: dict[str, dict[bytes, Way]] = {}
        self._joined: dict[str, tuple[dict[bytes, Way], bytes]] = {}
        for link in links:
            both = {(link["name"], TO_LAN), (link["name"], TO_HOST)}
            if link["lan"] and both <= self._ways.keys():
                table = self._tables.setdefault(link["lan"], {})
                mac = bytes.fromhex(link["mac"].replace(":", ""))
                table[mac] = self._ways[link["name"], TO_HOST]
                self._ways[link["name"], TO_LAN].lane.stations = table
                self._joined[link["name"]] = table, mac

    def cut(self, way: Way) -> None:
        """Let the bridge pass on all from and to this way's host from now on, if the way leads to one."""
        if way.direction == TO_HOST and way.link in self._joined:
            table, mac = self._joined.pop(way.link)
            del table[mac]
            self._ways[way.link, TO_LAN].lane.stations = None
