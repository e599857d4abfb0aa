"""Messages of the region-level protocol (paper 3.2): views, notifications, requests and their answers."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from node.core.errors import RemoteProtocolError
from node.core.layout import SEQ, Field, Tail
from node.protocols.sprinkler.stream_messages import Counter


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A row of VIEW. Whoever reads it needs no list of the region's clients: they join at any time."""

    reads: ClassVar = ("{member}",)

    member: Annotated[int, Field("I", "", "which of its region's clients; 4294967295: the region's proxy")]
    address: Annotated[int, Field("I", "", "its IPv4 address; 0 for the proxy, which everyone knows")]


@dataclass(frozen=True, slots=True)
class View:
    """The sender's view of its region: gossip of the membership protocol (3.2)."""

    reads: ClassVar = ("{neighbours}",)

    neighbours: Annotated[tuple[Neighbour, ...], Tail("rows", "the sender, then its neighbours", Neighbour)]


@dataclass(frozen=True, slots=True)
class Notify:
    """The sender has these streams up to cnt (3.2)."""

    reads: ClassVar = ("{counters}",)

    counters: Annotated[tuple[Counter, ...], Tail("rows", "streams that have grown", Counter)]


@dataclass(frozen=True, slots=True)
class Request:
    """Send me this stream's events next to cnt (3.2). Answered by EVENTS, SPARSE_EVENTS and one ANSWERED."""

    reads: ClassVar = ("s{stream}", "[{next}..{cnt}]")

    stream: Annotated[int, Field("I", "", "the stream")]
    next: Annotated[int, Field("Q", SEQ, "the first event that is wanted")]
    cnt: Annotated[int, Field("Q", SEQ, "the last event that is wanted")]

    def check(self) -> None:
        """Raises RemoteProtocolError for an interval that is none."""
        if not 0 < self.next <= self.cnt:
            raise RemoteProtocolError(f"REQUEST for {self.next} to {self.cnt}")


@dataclass(frozen=True, slots=True)
class Answered:
    """The events before this are all that the sender gives for a REQUEST (3.2: EVENTS carries cnt, too)."""

    reads: ClassVar = ("s{stream}", "[{next}..{last}]", "of {cnt}")

    stream: Annotated[int, Field("I", "", "the stream")]
    next: Annotated[int, Field("Q", SEQ, "next of the REQUEST")]
    last: Annotated[int, Field("Q", SEQ, "how far the answer goes: cnt of the REQUEST, or less")]
    cnt: Annotated[int, Field("Q", SEQ, "the sender's own cnt")]


# --- The replicated proxy (3.3)
