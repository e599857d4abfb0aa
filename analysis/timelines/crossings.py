"""Which packets of a link's captures crossed it in which direction, seen on the near or far side.

A packet's direction is told by its sender's region, since routes between regions are direct (DESIGN,
Regions); packets between other regions than the link's two are left out. The *near* side is where the packet
enters the link's middle, the *far* side where it leaves.
"""

from dataclasses import dataclass
from ipaddress import ip_network

import pyarrow as pa
import pyarrow.compute as pc

from analysis.timelines.periods import Json, Way

PACKET_COLUMNS = (
    "capture", "t_ns", "wire_length", "src_hi", "src_lo", "dst_lo", "sport", "dport", "proto", "seq", "ip_id",
    "payload_length", "payload_offset",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Crossing:
    """One direction of a link: its captures on either side, and the addresses from which its packets come."""

    way: Way
    near: str
    far: str
    low: int
    high: int


def crossings(run: Json) -> list[Crossing]:
    """Both directions of every WAN link that was captured on both sides."""
    plan = run["plan"]
    subnets = {region["name"]: ip_network(region["subnet"]) for region in plan["regions"]}
    sides = {
        (capture["link"], capture["side"]): capture["file"].removesuffix(".pcap")
        for capture in plan["captures"]
        if capture.get("link") and not capture.get("wire")
    }
    found = []
    for link in plan["links"]:
        name, a, b = link["name"], link["a"], link["b"]
        if link["kind"] == "wan" and (name, a) in sides and (name, b) in sides:
            for direction, sender, taker in (("forward", a, b), ("backward", b, a)):
                low, high = int(subnets[sender][0]), int(subnets[sender][-1])
                found.append(Crossing((name, direction), sides[name, sender], sides[name, taker], low, high))
    return found


def sides(packets: pa.Table, crossing: Crossing) -> tuple[pa.Table, pa.Table]:
    """The packets of this direction, as seen on its near and on its far side.

    packets: rows with `PACKET_COLUMNS` that hold at least both captures.
    """
    source = packets.column("src_lo")
    sent = pc.and_(pc.greater_equal(source, crossing.low), pc.less_equal(source, crossing.high))
    mine = packets.filter(pc.and_(sent, pc.equal(packets.column("src_hi"), 0)))
    near, far = (
        mine.filter(pc.equal(mine.column("capture"), name)) for name in (crossing.near, crossing.far)
    )
    return near, far
