"""Messages between nodes of a CAN (SIGCOMM 2001, section 2). The sender's address is the connection's.

CLAIM tells who has which zone. The paper's updates are its CLAIMs, sent when something changes, and HEARTBEAT
while nothing does. A zone goes from one node to another by GRANT and GRANTED.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from node.core.errors import RemoteProtocolError
from node.core.message_layout import ADDRESS, Field, Layout, Tail
from node.protocols.can.zones import Point, Zone
from node.protocols.reachability.messages import Ping, Pong, Relay, Routed, Unheard
from node.protocols.reachability.nodes import NodeHandle

Id = Annotated[int, Field("K", "", "the node's id", columns=("key",))]
Sender = Annotated[int, Field("K", "", "the sender's id", columns=("key",))]
Address = Annotated[int, Field("I", ADDRESS, "where it listens")]
Sequence = Annotated[int, Field("Q", "", "of its zones: greater with each change")]


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Of a point, in one dimension."""

    reads: ClassVar = ("{at}",)

    at: Annotated[float, Field("d", "", "from 0 to 1")]


@dataclass(frozen=True, slots=True)
class Side:
    """Of a zone, in one dimension."""

    reads: ClassVar = ("{low}..{high}",)

    low: Annotated[float, Field("d", "", "the lower edge, from 0 to 1")]
    high: Annotated[float, Field("d", "", "the upper edge")]


def check_sides(name: str, sides: Iterable[Side]) -> None:
    """Raises RemoteProtocolError unless they are those of a box in the space."""
    for side in sides:
        if not 0.0 <= side.low < side.high <= 1.0:
            raise RemoteProtocolError(f"{name} with a zone from {side.low} to {side.high}")


def check_point(name: str, point: Iterable[Coordinate]) -> None:
    """Raises RemoteProtocolError unless it is in the space."""
    for each in point:
        if not 0.0 <= each.at <= 1.0:
            raise RemoteProtocolError(f"{name} with a coordinate {each.at}")


Coordinates = Annotated[tuple[Coordinate, ...], Tail("rows", "of a point", Coordinate)]
Sides = Annotated[tuple[Side, ...], Tail("rows", "of the zone", Side)]


@dataclass(frozen=True, slots=True)
class Route:
    """To the node whose zone has the message's point; which that is, the message says."""

    reads: ClassVar = ("hops {hops}",)

    number: Annotated[int, Field("I", "", "of the sender's; 0: no ROUTED is expected")]
    hops: Annotated[int, Field("H", "nodes", "that passed it on")]
    message: Annotated[Any, Tail("message", "for the node of the zone")]


@dataclass(frozen=True, slots=True)
class Join:
    """Give me a part of your zone: routed to a point, or sent to a node that is to have less to do."""

    reads: ClassVar = ("{id}",)

    id: Id
    address: Address
    sequence: Annotated[int, Field("Q", "", "that its zones will have first")]
    point: Coordinates

    def check(self) -> None:
        """Raises RemoteProtocolError for a point beyond the space."""
        check_point("JOIN", self.point)


@dataclass(frozen=True, slots=True)
class Claim:
    """A node has this zone; from itself, or from another one that knows of it."""

    reads: ClassVar = ("{id}", "#{sequence}", "v{version?}", "{sides}")

    id: Id
    address: Address
    sequence: Sequence
    count: Annotated[int, Field("H", "zones", "that the node has, each in a CLAIM; 0: none, nor is this one")]
    version: Annotated[int, Field("H", "", "how often the zone was taken over from nodes that failed")]
    sides: Sides

    def check(self) -> None:
        """Raises RemoteProtocolError for a zone that is none."""
        check_sides("CLAIM", self.sides)


@dataclass(frozen=True, slots=True)
class Heirs:
    """Who has copies of a node's zones, and who should have them when it has failed."""

    reads: ClassVar = ("{id}", "replicas {replicas?}", "{nodes}")

    id: Id
    address: Address
    replicas: Annotated[int, Field("B", "nodes", "of those below, from the first one on, that have copies")]
    nodes: Annotated[tuple[NodeHandle, ...], Tail("rows", "in order", NodeHandle)]


@dataclass(frozen=True, slots=True)
class Grant:
    """This zone is yours. Answered by GRANTED."""

    reads: ClassVar = ("{number}", "v{version?}", "{sides}")

    id: Sender
    number: Annotated[int, Field("I", "", "of the grant, and of its answer")]
    version: Annotated[int, Field("H", "", "how often the zone was taken over from nodes that failed")]
    sides: Sides

    def check(self) -> None:
        """Raises RemoteProtocolError for a zone that is none."""
        check_sides("GRANT", self.sides)


@dataclass(frozen=True, slots=True)
class Granted:
    """It is."""

    reads: ClassVar = ("{number}",)

    number: Annotated[int, Field("I", "", "of the grant")]


@dataclass(frozen=True, slots=True)
class Copy:
    """Be a replica: have all that I have of my zones."""

    reads: ClassVar = ("{id}",)

    id: Sender


@dataclass(frozen=True, slots=True)
class Disown:
    """I am no replica of yours, nor you of mine."""

    reads: ClassVar = ("{id}", "#{sequence}")

    id: Sender
    sequence: Sequence


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """I live, and my zones are those that I told of. Answered by TELL where they are not known."""

    reads: ClassVar = ("{id}", "#{sequence}")

    id: Sender
    sequence: Sequence


@dataclass(frozen=True, slots=True)
class Tell:
    """Which zones have you? Answered by CLAIMs."""

    reads: ClassVar = ("{id}",)

    id: Sender


@dataclass(frozen=True, slots=True)
class Probe:
    """Are you alive? Answered by ALIVE."""

    reads: ClassVar = ("{id}",)

    id: Sender
    number: Annotated[int, Field("I", "", "of the probe, and of its answer")]
    sequence: Sequence


@dataclass(frozen=True, slots=True)
class Alive(Probe):
    """I am."""


@dataclass(frozen=True, slots=True)
class Report:
    """A node gives no answer, and you are its heir."""

    reads: ClassVar = ("{id} failed",)

    id: Id
    address: Address


@dataclass(frozen=True, slots=True)
class Find:
    """Whose zone has this point? Answered by CLAIMs, to the one who asks."""

    reads: ClassVar = ("for {address}", "{point}")

    address: Annotated[int, Field("I", ADDRESS, "who asks")]
    hops: Annotated[int, Field("B", "nodes", "that passed it on")]
    point: Coordinates

    def check(self) -> None:
        """Raises RemoteProtocolError for a point beyond the space."""
        check_point("FIND", self.point)


CAN_MESSAGES = (
    Route, Routed, Join, Claim, Heirs, Grant, Granted, Heartbeat, Tell, Probe, Alive, Report, Find,
    Ping, Pong, Relay, Unheard, Copy, Disown,
)  # fmt: skip


def can_layouts(first: int = 1) -> list[Layout]:
    """Of all messages, numbered from `first` on, for the codec of the system that stands on CAN."""
    return [Layout(message, first + number) for number, message in enumerate(CAN_MESSAGES)]


def sides_of(zone: Zone) -> tuple[Side, ...]:
    """A zone as messages have it."""
    return tuple(map(Side, zone.low, zone.high))


def zone_of(sides: tuple[Side, ...]) -> Zone:
    """A message's zone."""
    return Zone(tuple([side.low for side in sides]), tuple([side.high for side in sides]))


def coordinates_of(point: Point) -> tuple[Coordinate, ...]:
    """A point as messages have it."""
    return tuple(map(Coordinate, point))


def point_of(coordinates: tuple[Coordinate, ...]) -> Point:
    """A message's point."""
    return tuple([each.at for each in coordinates])
