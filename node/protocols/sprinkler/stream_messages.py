"""Messages of the proxy-level protocol (paper 3.1): counters, paths and subscriptions of streams; and of the
region-level protocol (paper 3.2): views, notifications, requests and their answers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from node.core.content.value import value
from node.core.epochs import SEQ_MAX
from node.core.errors import RemoteProtocolError
from node.core.message_layout import SEQ, Field, TailField
from node.protocols.sprinkler.message_values import check_number


@value
class Counter:
    """A row of ADVERTISEMENT, NOTIFY, FOLLOW and STORED: cnt of one stream."""

    reads: ClassVar = ("s{stream} {cnt}",)
    column: ClassVar = "advertised"

    stream: Annotated[int, Field("I", "", "the stream")]
    cnt: Annotated[int, Field("Q", SEQ, "sequence number of the last event that the sender has")]


def check_counters(name: str, counters: Iterable[Counter]) -> None:
    """Raise RemoteProtocolError for a counter beyond the limit."""
    for counter in counters:
        check_number(name, counter.cnt, SEQ_MAX)


@value
class Advertisement:
    """The sender's progress on each stream, and its heartbeat (paper 3.1).

    A stream that has had several epochs has several rows, one for the end of each former epoch.
    """

    reads: ClassVar = ("{counters}",)

    counters: Annotated[tuple[Counter, ...], TailField("rows", "cnt of each stream", Counter)]

    def check(self) -> None:
        """Raise RemoteProtocolError for a counter beyond the limit."""
        check_counters("ADVERTISEMENT", self.counters)


@dataclass(frozen=True, slots=True)
class Hop:
    """A row of PATHS: one region of one stream's path."""

    reads: ClassVar = ("s{stream} {region}",)
    column: ClassVar = "hops"

    stream: Annotated[int, Field("I", "", "the stream")]
    region: Annotated[
        int, Field("I", "", "a region, by its position among the run's regions, sorted by name")
    ]


@dataclass(frozen=True, slots=True)
class Paths:
    """The regions through which the sender's region gets each stream, from itself to the owner.

    Sent only when a connection opens and when a path changes. A stream without hops has no path. The paper
    has no such message; docs/subscription-rule.md gives the reason for it.
    """

    reads: ClassVar = ("{hops}",)

    hops: Annotated[tuple[Hop, ...], TailField("rows", "by stream, in the order of the path", Hop)]

    def check(self) -> None:
        """Raise RemoteProtocolError for a path that leads through a region twice."""
        if len(dict.fromkeys(self.hops)) != len(self.hops):
            raise RemoteProtocolError("PATHS with a region twice in a path")


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A request for this stream's events after cnt, and for later ones (paper 3.1). cnt is the subscriber's
    own.
    """

    reads: ClassVar = ("s{stream}", "after {cnt}")

    stream: Annotated[int, Field("I", "", "the stream")]
    cnt: Annotated[int, Field("Q", SEQ, "the subscriber's own cnt")]

    def check(self) -> None:
        """Raise RemoteProtocolError for a counter beyond the limit."""
        check_number("SUBSCRIBE", self.cnt, SEQ_MAX)


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A request to stop sending this stream (paper 3.1)."""

    reads: ClassVar = ("s{stream}",)

    stream: Annotated[int, Field("I", "", "the stream")]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A row of VIEW: a neighbour with its address, because clients may join at any time."""

    reads: ClassVar = ("{member}",)
    column: ClassVar = "members"

    member: Annotated[int, Field("I", "", "index among its region's clients; 4294967295: the region's proxy")]
    address: Annotated[int, Field("I", "", "its IPv4 address; 0 for the proxy, which all nodes know")]


@dataclass(frozen=True, slots=True)
class View:
    """The sender's view of its region: gossip of the membership protocol (3.2)."""

    reads: ClassVar = ("{neighbours}",)

    neighbours: Annotated[
        tuple[Neighbour, ...], TailField("rows", "the sender, then its neighbours", Neighbour)
    ]


@value
class Notify:
    """The sender has these streams up to cnt (3.2)."""

    reads: ClassVar = ("{counters}",)

    counters: Annotated[tuple[Counter, ...], TailField("rows", "streams that have grown", Counter)]

    def check(self) -> None:
        """Raise RemoteProtocolError for a counter beyond the limit."""
        check_counters("NOTIFY", self.counters)


@value
class Request:
    """A request for this stream's events next to cnt (3.2). Answered by EVENTS, SPARSE_EVENTS and one
    ANSWERED.
    """

    reads: ClassVar = ("s{stream}", "[{next}..{cnt}]")

    stream: Annotated[int, Field("I", "", "the stream")]
    next: Annotated[int, Field("Q", SEQ, "the first requested event")]
    cnt: Annotated[int, Field("Q", SEQ, "the last requested event")]

    def check(self) -> None:
        """Raise RemoteProtocolError for an invalid interval."""
        if not 0 < self.next <= self.cnt:
            raise RemoteProtocolError(f"REQUEST for {self.next} to {self.cnt}")
        check_number("REQUEST", self.cnt, SEQ_MAX)


@value
class Answered:
    """The sender sends no more events for a REQUEST (3.2: EVENTS carries cnt, too)."""

    reads: ClassVar = ("s{stream}", "[{next}..{last}]", "of {cnt}")

    stream: Annotated[int, Field("I", "", "the stream")]
    next: Annotated[int, Field("Q", SEQ, "next of the REQUEST")]
    last: Annotated[int, Field("Q", SEQ, "the last event of the answer: cnt of the REQUEST, or less")]
    cnt: Annotated[int, Field("Q", SEQ, "the sender's own cnt")]

    def check(self) -> None:
        """Raise RemoteProtocolError for a sequence number beyond the limit."""
        check_number("ANSWERED", max(self.next, self.last, self.cnt), SEQ_MAX)
