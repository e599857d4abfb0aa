"""Determines which packets of a link's captures traversed it in which direction, on the near or far side."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import Bools, Ints, ints
from analysis.timelines.links.periods import LinkDirection, carriers, wan_hops
from experiments.planned.plan import LinkPlan, Plan
from experiments.planned.plan_routes import group_trees, hops
from topologies.group_membership import END_GROUP, FIRST_GROUP

PACKET_COLUMNS = (
    "capture", "t_ns", "wire_length", "src_hi", "src_lo", "dst_lo", "sport", "dport", "proto", "seq", "ack",
    "flags", "ip_id", "payload_length", "payload_offset", "digest", "checksum", "sender",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LinkTraversal:
    """One direction of a link: its captures on either side, and the pairs of subnets whose packets traverse
    it in that direction. A subnet is its first and last address; the multicast groups are one, too.

    sender: the address of the gateway that sends into the direction, if routes are not fixed: then these
    pairs are any regions, and each frame's own MAC address says its direction.
    """

    direction: LinkDirection
    near: str
    far: str
    pairs: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
    sender: int | None = None


def traversals(plan: Plan) -> list[LinkTraversal]:
    """Return both directions of every WAN link that was captured on both sides."""
    subnets = {region.name: ip_network(region.subnet) for region in plan.regions}
    addresses = {name: (int(subnet[0]), int(subnet[-1])) for name, subnet in subnets.items()}
    sides = {
        (capture.link, capture.side): capture.file.removesuffix(".pcap")
        for capture in plan.captures
        if capture.link and not capture.wire
    }
    regions = list(addresses.values())
    any_pair = tuple((one, other) for one in regions for other in (*regions, (FIRST_GROUP, END_GROUP - 1)))
    ends_of_links = () if plan.routing is None else (end for link in plan.links for end in _ends(link))
    senders = dict(ends_of_links)
    between, trees, carrier = hops(plan), group_trees(plan), carriers(plan)
    found = []
    for (name, direction), (sender, taker) in wan_hops(plan).items():
        if (name, sender) in sides and (name, taker) in sides:
            carries = carrier[sender, taker] == (name, direction)
            ends = [pair for pair, route in between.items() if carries and (sender, taker) in route]
            pairs = [(addresses[source], addresses[target]) for source, target in ends]
            sources = [source for source, tree in trees.items() if carries and tree.get(taker) == sender]
            pairs += [(addresses[source], (FIRST_GROUP, END_GROUP - 1)) for source in sources]
            near, far = sides[name, sender], sides[name, taker]
            if plan.routing is None:
                found.append(LinkTraversal((name, direction), near, far, tuple(pairs)))
            else:
                found.append(LinkTraversal((name, direction), near, far, any_pair, senders[name, sender]))
    return found


def _ends(link: LinkPlan) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield a WAN link with each of its regions, and the address of that region's gateway on it."""
    if link.kind == "wan":
        yield (link.name, link.a), int(ip_address(link.a_address))
        yield (link.name, link.b), int(ip_address(link.b_address))


def sides(packets: pa.Table, traversal: LinkTraversal) -> tuple[pa.Table, pa.Table]:
    """Return the packets of this direction, as seen on its near and on its far side.

    packets: rows with `PACKET_COLUMNS` that hold at least both captures.
    """
    source, target = ints(packets, "src_lo"), ints(packets, "dst_lo")
    sent = np.zeros(packets.num_rows, np.bool_)
    for senders, takers in traversal.pairs:
        sent |= _within(source, senders) & _within(target, takers)
    if traversal.sender is not None:
        sent &= ints(packets, "sender") == traversal.sender
    mine = packets.filter(pa.array(sent & (ints(packets, "src_hi") == 0)))
    near, far = (
        mine.filter(pc.equal(mine.column("capture"), name)) for name in (traversal.near, traversal.far)
    )
    return near, far


def _within(addresses: Ints, subnet: tuple[int, int]) -> Bools:
    return (addresses >= subnet[0]) & (addresses <= subnet[1])
