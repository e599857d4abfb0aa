"""Messages between nodes of a CAN (SIGCOMM 2001, section 2). The sender's address is the connection's.

CLAIM states which node has which zone. The paper's updates are CLAIMs, sent on each change, and HEARTBEATs in
between. A zone moves from one node to another by GRANT and GRANTED.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from node.core.errors import RemoteProtocolError
from node.core.message_layout import ADDRESS, Field, TailField, wire_name
from node.protocols.can.zones import Point, Zone
from node.protocols.reachability.messages import Ping, Pong, Relay, Routed, Unheard
from node.protocols.reachability.nodes import NodeHandle

Id = Annotated[int, Field("K", "", "the node's id", columns=("key",))]
Sender = Annotated[int, Field("K", "", "the sender's id", columns=("key",))]
Address = Annotated[int, Field("I", ADDRESS, "listen address of the node")]
Sequence = Annotated[int, Field("Q", "", "version of its set of zones, increased with each change")]


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Coordinate of a point in one dimension."""

    reads: ClassVar = ("{at}",)

    at: Annotated[float, Field("d", "", "from 0 to 1")]


@dataclass(frozen=True, slots=True)
class ZoneSide:
    """Extent of a zone in one dimension."""

    reads: ClassVar = ("{low}..{high}",)

    low: Annotated[float, Field("d", "", "the lower edge, from 0 to 1")]
    high: Annotated[float, Field("d", "", "the upper edge")]


def check_sides(message: object, sides: Iterable[ZoneSide]) -> None:
    """Check that the sides, from this message, describe a box in the space. Raises RemoteProtocolError."""
    for side in sides:
        if not 0.0 <= side.low < side.high <= 1.0:
            name = wire_name(type(message))
            raise RemoteProtocolError(f"{name} with a zone from {side.low} to {side.high}")


def check_zone(message: "Claim | Grant") -> None:
    """Check the message's zone, as `check_sides`."""
    check_sides(message, message.sides)


def check_point(message: "Join | Find") -> None:
    """Check that the message's point is in the space. Raises RemoteProtocolError."""
    for each in message.point:
        if not 0.0 <= each.at <= 1.0:
            raise RemoteProtocolError(f"{wire_name(type(message))} with a coordinate {each.at}")


Coordinates = Annotated[tuple[Coordinate, ...], TailField("rows", "coordinates of a point", Coordinate)]
Sides = Annotated[tuple[ZoneSide, ...], TailField("rows", "sides of the zone", ZoneSide)]


@dataclass(frozen=True, slots=True)
class Route:
    """A message on its way to the node whose zone contains the message's point."""

    reads: ClassVar = ("hops {hops}",)

    number: Annotated[int, Field("I", "", "sender's number for ROUTED; 0: no ROUTED is expected")]
    hops: Annotated[int, Field("H", "nodes", "that forwarded it")]
    message: Annotated[Any, TailField("message", "for the node of the zone")]


@dataclass(frozen=True, slots=True)
class Join:
    """A request for part of a zone, routed to a point or sent to an overloaded node."""

    reads: ClassVar = ("{id}",)

    id: Id
    address: Address
    sequence: Annotated[int, Field("Q", "", "sequence of its first zone")]
    point: Coordinates

    check = check_point


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement that a node has this zone, from the node itself or from another one."""

    reads: ClassVar = ("{id}", "#{sequence}", "v{version?}", "{sides}")

    id: Id
    address: Address
    sequence: Sequence
    count: Annotated[
        int, Field("H", "zones", "of the node, each in its own CLAIM; 0: no zone, and this CLAIM has none")
    ]
    version: Annotated[int, Field("H", "", "number of times the zone was taken over from failed nodes")]
    sides: Sides

    check = check_zone


@dataclass(frozen=True, slots=True)
class Successors:
    """The nodes with copies of a node's zones, and those that take its zones over when it fails."""

    reads: ClassVar = ("{id}", "replicas {replicas?}", "{nodes}")

    id: Id
    address: Address
    replicas: Annotated[int, Field("B", "nodes", "number of first nodes in the list that have copies")]
    nodes: Annotated[tuple[NodeHandle, ...], TailField("rows", "successors in order", NodeHandle)]


@dataclass(frozen=True, slots=True)
class Grant:
    """A zone for the receiver. Answered by GRANTED."""

    reads: ClassVar = ("{number}", "v{version?}", "{sides}")

    id: Sender
    number: Annotated[int, Field("I", "", "of the grant, repeated in its answer")]
    version: Annotated[int, Field("H", "", "number of times the zone was taken over from failed nodes")]
    sides: Sides

    check = check_zone


@dataclass(frozen=True, slots=True)
class Granted:
    """The receiver has the granted zone."""

    reads: ClassVar = ("{number}",)

    number: Annotated[int, Field("I", "", "of the grant")]


@dataclass(frozen=True, slots=True)
class SenderMessage:
    """Any message that has only the sender's id."""

    reads: ClassVar[tuple[str, ...]] = ("{id}",)

    id: Sender


@dataclass(frozen=True, slots=True)
class Copy(SenderMessage):
    """A request to become a replica: to have copies of all data in the sender's zones."""


@dataclass(frozen=True, slots=True)
class ClaimRequest(SenderMessage):
    """A request for the receiver's zones. Answered by CLAIMs."""


@dataclass(frozen=True, slots=True)
class Heartbeat(SenderMessage):
    """The sender is alive and has the zones that it claimed last. If they are unknown: CLAIM_REQUEST."""

    reads: ClassVar = ("{id}", "#{sequence}")

    sequence: Sequence


@dataclass(frozen=True, slots=True)
class Disown(SenderMessage):
    """The end of the replica relation between sender and receiver, in either direction."""

    reads: ClassVar = ("{id}", "#{sequence}")

    sequence: Sequence


@dataclass(frozen=True, slots=True)
class Probe:
    """A check whether the receiver is alive. Answered by ALIVE."""

    reads: ClassVar = ("{id}",)

    id: Sender
    number: Annotated[int, Field("I", "", "of the probe, repeated in its answer")]
    sequence: Sequence


@dataclass(frozen=True, slots=True)
class Alive(Probe):
    """The sender of the answer is alive."""


@dataclass(frozen=True, slots=True)
class Report:
    """A node does not answer, and the receiver is its successor."""

    reads: ClassVar = ("{id} failed",)

    id: Id
    address: Address


@dataclass(frozen=True, slots=True)
class Find:
    """A search for the owner of a point. Answered by CLAIMs to the searching node."""

    reads: ClassVar = ("for {address}", "{point}")

    address: Annotated[int, Field("I", ADDRESS, "of the searching node")]
    hops: Annotated[int, Field("B", "nodes", "that forwarded it")]
    point: Coordinates

    check = check_point


CAN_MESSAGES = (
    Route, Routed, Join, Claim, Successors, Grant, Granted, Heartbeat, ClaimRequest, Probe, Alive, Report,
    Find, Ping, Pong, Relay, Unheard, Copy, Disown,
)  # fmt: skip


class _SidesOfZone(tuple[ZoneSide, ...]):
    """The sides of a zone with the zone itself, so that nodes of one process share it."""

    zone: Zone


def sides_of(zone: Zone) -> tuple[ZoneSide, ...]:
    """Return a zone in the form that messages carry."""
    sides = _SidesOfZone(map(ZoneSide, zone.low, zone.high))
    sides.zone = zone
    return sides


def zone_of(sides: tuple[ZoneSide, ...]) -> Zone:
    """Return the zone from a message's sides."""
    if type(sides) is _SidesOfZone:
        return sides.zone
    return Zone(tuple([side.low for side in sides]), tuple([side.high for side in sides]))


def coordinates_of(point: Point) -> tuple[Coordinate, ...]:
    """Return a point in the form that messages carry."""
    return tuple(map(Coordinate, point))


def point_of(coordinates: tuple[Coordinate, ...]) -> Point:
    """Return the point from a message's coordinates."""
    return tuple([each.at for each in coordinates])
