"""An overlay as joins would create it, built at once: nodes, their zones and their neighbours.

For simulations of many nodes. The zones come from successive splits of the largest one, or from elsewhere.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from node.protocols.can.claims import ZoneHolder
from node.protocols.can.overlay import Can
from node.protocols.can.zone_table import ZoneTable
from node.protocols.can.zones import Zone, whole_space


def halved_zones(count: int, dimensions: int) -> list[Zone]:
    """Return `count` zones: repeatedly, the first of the largest zones is halved along its longest side."""
    heap = [(-1.0, 0, whole_space(dimensions))]
    heapify(heap)
    for number in range(1, count):
        _, _, zone = heappop(heap)
        side = zone.longest_side
        below, above = zone.split(side, (zone.low[side] + zone.high[side]) / 2)
        heappush(heap, (-below.volume, 2 * number, below))
        heappush(heap, (-above.volume, 2 * number + 1, above))
    return sorted(zone for _, _, zone in heap)


def assign_zones(nodes: Sequence[Can], zones: Sequence[Zone]) -> None:
    """Assign one zone to each node, and all neighbours; the zones are a partition of the space.

    Calls no application and sends nothing.
    """
    table = ZoneTable[int](zones[0].dimensions)
    for number, (node, zone) in enumerate(zip(nodes, zones, strict=True)):
        table.add(number, zone)
        node.claims.have({zone: 0})
    for node, zone in zip(nodes, zones, strict=True):
        for row in np.flatnonzero(table.adjacent(zone)).tolist():
            other = nodes[table.owners[row]].claims.own
            node.claims.know(ZoneHolder(other.node, other.sequence, dict(other.versions)))
