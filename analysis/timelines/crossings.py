"""Which packets of the link captures crossed which WAN link in which direction, near or far side: a Spark
step.

A packet's direction is told by its sender's region, since routes between regions are direct (DESIGN,
Regions); packets between other regions than the link's two are left out. The *near* side is where the packet
enters the link's middle, the *far* side where it leaves.
"""

from ipaddress import ip_network

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)

from analysis.timelines.periods import Json

COLUMNS = (
    "link",
    "direction",
    "far",
    "t_ns",
    "wire_length",
    "src_lo",
    "dst_lo",
    "sport",
    "dport",
    "proto",
    "seq",
    "ip_id",
    "payload_length",
)


def crossings(packets: DataFrame, run: Json) -> DataFrame:
    """Rows of `COLUMNS` from rows of `analysis.schemas.PACKETS`, of the captures at links' middles."""
    sides = packets.sparkSession.createDataFrame(
        _sides(run), "capture string, link string, direction string, far boolean, low bigint, high bigint"
    )
    placed = packets.where(F.col("src_hi") == 0).join(F.broadcast(sides), "capture", "inner")
    return placed.where("src_lo between low and high").select(*COLUMNS)


def _sides(run: Json) -> list[tuple[str, str, str, bool, int, int]]:
    """For each capture at a link and each direction: the addresses of its senders and whether this is the far
    side.
    """
    plan = run["plan"]
    subnets = {region["name"]: ip_network(region["subnet"]) for region in plan["regions"]}
    links = {link["name"]: link for link in plan["links"] if link["kind"] == "wan"}
    found = []
    for capture in plan["captures"]:
        link = links.get(capture.get("link") or "")
        if link is None:
            continue
        stem = capture["file"].removesuffix(".pcap")
        for direction, sender in (("forward", link["a"]), ("backward", link["b"])):
            low, high = int(subnets[sender][0]), int(subnets[sender][-1])
            found.append((stem, link["name"], direction, capture["side"] != sender, low, high))
    return found
