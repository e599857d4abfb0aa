"""Messages by which a node finds out who is reached, and how. The sender's address is the connection's.

ROUTED acknowledges each hop of what is routed (MSPastry, 3.2: Castro, Costa, Rowstron: Performance and
Dependability of Structured Peer-to-Peer Overlays, DSN 2004). RELAY carries a message round a link that
is cut.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from node.core.message_layout import ADDRESS, Field, Tail


@dataclass(frozen=True, slots=True)
class Routed:
    """I have it: it is mine to bring on. Without this it is sent another way."""

    number: Annotated[int, Field("I", "", "of the ROUTE that came")]


@dataclass(frozen=True, slots=True)
class Ping:
    """How far away are you? Answered by PONG."""

    id: Annotated[int, Field("K", "", "the sender's id", columns=("key",))]
    number: Annotated[int, Field("I", "", "of the ping, and of its answer")]


@dataclass(frozen=True, slots=True)
class Pong(Ping):
    """This far. And you? Answered by PONG, if it asks back. Number 0 answers no ping: it says that parts of a
    long message come.
    """

    back: Annotated[int, Field("I", "", "the number of what it asks; 0: nothing")]


@dataclass(frozen=True, slots=True)
class Relay:
    """Pass this on to a node that I do not reach."""

    reads: ClassVar = ("for {target}",)

    source: Annotated[int, Field("I", ADDRESS, "address of the node that does not reach it")]
    target: Annotated[int, Field("I", ADDRESS, "address of the node for which it is")]
    first: Annotated[int, Field("I", ADDRESS, "address of the relay")]
    second: Annotated[int, Field("I", ADDRESS, "address of a relay after the first, or 0")]
    third: Annotated[int, Field("I", ADDRESS, "address of a relay after the second, or 0")]
    fourth: Annotated[int, Field("I", ADDRESS, "address of a relay after the third, or 0")]
    search: Annotated[int, Field("B", "nodes", "that the last one so far may try as further ones")]
    message: Annotated[Any, Tail("message", "what it is")]

    @property
    def way(self) -> tuple[int, ...]:
        """Its relays, in order."""
        return tuple(relay for relay in (self.first, self.second, self.third, self.fourth) if relay)


@dataclass(frozen=True, slots=True)
class Unheard:
    """Through a relay: I do not hear you directly, whether you hear me or not."""

    id: Annotated[int, Field("K", "", "the sender's id", columns=("key",))]
