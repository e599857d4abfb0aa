"""Messages by which nodes find out which nodes are reachable, and how. Connections give the sender's address.

ROUTED acknowledges each hop of a routed message (MSPastry, 3.2: Castro, Costa, Rowstron: Performance and
Dependability of Structured Peer-to-Peer Overlays, DSN 2004). RELAY carries a message around a link that is
cut.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from node.core.message_layout import ADDRESS, Field, TailField


@dataclass(frozen=True, slots=True)
class Routed:
    """The sender forwards the acknowledged message from here. Without ROUTED the message takes another
    way.
    """

    number: Annotated[int, Field("I", "", "of the acknowledged ROUTE")]


@dataclass(frozen=True, slots=True)
class Ping:
    """A measurement of the round-trip time. Answered by PONG."""

    id: Annotated[int, Field("K", "", "the sender's id", columns=("key",))]
    number: Annotated[int, Field("I", "", "of the ping, repeated in its answer")]


@dataclass(frozen=True, slots=True)
class Pong(Ping):
    """The answer to PING, or to a PONG that contains a ping.

    Number 0 answers no ping: it reports that parts of a long message arrive.
    """

    back: Annotated[int, Field("I", "", "number of a ping back to the receiver; 0: none")]


@dataclass(frozen=True, slots=True)
class Relay:
    """A message for a node that the sender does not reach directly."""

    reads: ClassVar = ("for {target}",)

    source: Annotated[int, Field("I", ADDRESS, "address of the node that sends the message")]
    target: Annotated[int, Field("I", ADDRESS, "address of the node that receives the message")]
    first: Annotated[int, Field("I", ADDRESS, "address of the relay")]
    second: Annotated[int, Field("I", ADDRESS, "address of a relay after the first, or 0")]
    third: Annotated[int, Field("I", ADDRESS, "address of a relay after the second, or 0")]
    fourth: Annotated[int, Field("I", ADDRESS, "address of a relay after the third, or 0")]
    search: Annotated[
        int,
        Field(
            "B", "nodes", "that the last relay may try as further relays; 128 more: all relays after it, too"
        ),
    ]
    message: Annotated[Any, TailField("message", "the relayed message")]

    @property
    def way(self) -> tuple[int, ...]:
        """Relays in order."""
        return tuple(relay for relay in (self.first, self.second, self.third, self.fourth) if relay)


@dataclass(frozen=True, slots=True)
class Unheard:
    """Sent through a relay: the sender does not receive the receiver's direct messages."""

    id: Annotated[int, Field("K", "", "the sender's id", columns=("key",))]
