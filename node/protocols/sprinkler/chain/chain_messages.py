"""Messages of the replicated proxy (paper 3.3): along the chain, and with its configuration service."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from node.core.content.value import value
from node.core.epochs import SEQ_MAX
from node.core.errors import RemoteProtocolError
from node.core.message_layout import SEQ, Field, TailField
from node.protocols.sprinkler.message_values import DiskState, Standing, check_number
from node.protocols.sprinkler.stream_messages import Counter, check_counters


@value
class Publication:
    """The publisher of the events from first_seq on; passed down the chain, so that a retry is recognised."""

    reads: ClassVar = (
        "s{stream}",
        "[{first_seq}..{first_seq+count}]",
        "request {first_request}",
        "by {name}",
    )

    stream: Annotated[int, Field("I", "", "the stream")]
    first_seq: Annotated[int, Field("Q", SEQ, "sequence number of its first event")]
    count: Annotated[int, Field("I", "events", "events in the batch")]
    first_request: Annotated[int, Field("Q", "events", "of its PUBLISH", columns=("request",))]
    incarnation: Annotated[int, Field("Q", "", "of its publisher")]
    name: Annotated[str, TailField("text", "its publisher")]

    def check(self) -> None:
        """Raise RemoteProtocolError for a sequence number beyond the limit."""
        check_number("PUBLICATION", self.first_seq, SEQ_MAX)


@dataclass(frozen=True, slots=True)
class Follow:
    """The sender follows the receiver in this configuration, has these counters, and requests what follows.

    The predecessor answers in kind, with its own counters: what it sends along the chain from then on belongs
    to this configuration, and what it sent before is ignored.
    """

    reads: ClassVar = ("configuration {configuration}", "{counters}")

    configuration: Annotated[int, Field("Q", "", "number of the configuration")]
    counters: Annotated[tuple[Counter, ...], TailField("rows", "cnt of each stream", Counter)]

    def check(self) -> None:
        """Raise RemoteProtocolError for a counter beyond the limit."""
        check_counters("FOLLOW", self.counters)


@value
class Stored:
    """All replicas from the sender to the tail have these streams up to cnt."""

    reads: ClassVar = ("{counters}",)

    counters: Annotated[tuple[Counter, ...], TailField("rows", "streams that have grown", Counter)]

    def check(self) -> None:
        """Raise RemoteProtocolError for a counter beyond the limit."""
        check_counters("STORED", self.counters)


@dataclass(frozen=True, slots=True)
class Token:
    """The receiver has everything: it is the tail from now on (3.3)."""

    reads: ClassVar = ("configuration {configuration}",)

    configuration: Annotated[int, Field("Q", "", "in which the sender was the tail")]


@dataclass(frozen=True, slots=True)
class Replica:
    """A row of CONFIGURATION."""

    reads: ClassVar = ("{index}", "{standing?}")
    column: ClassVar = "members"

    index: Annotated[int, Field("I", "", "index among its region's proxies")]
    standing: Annotated[int, Field("B", "", "role in the chain", Standing)]
    incarnation: Annotated[int, Field("Q", "", "of the intended process; 0: any")]


@dataclass(frozen=True, slots=True)
class Configuration:
    """The chain of the sender's region from head to tail, and the replica joining behind it (3.3)."""

    reads: ClassVar = ("{number}:", "{replicas}")

    number: Annotated[int, Field("Q", "", "increases with each configuration", columns=("configuration",))]
    began: Annotated[int, Field("Q", "", "configuration since which a member has all; earlier state is void")]
    replicas: Annotated[
        tuple[Replica, ...], TailField("rows", "members from head to tail, then the joining replica", Replica)
    ]

    def check(self) -> None:
        """Raise RemoteProtocolError for an invalid chain."""
        check_number("CONFIGURATION", self.number)
        indices = [replica.index for replica in self.replicas]
        if len(dict.fromkeys(indices)) != len(indices):
            raise RemoteProtocolError(f"CONFIGURATION {self.number} with a replica listed twice")
        if any(replica.standing != Standing.MEMBER for replica in self.replicas[:-1]):
            raise RemoteProtocolError(f"CONFIGURATION {self.number} with members after the joining replica")
        if any(replica.standing > Standing.JOINING for replica in self.replicas):
            raise RemoteProtocolError(f"CONFIGURATION {self.number} with an unknown standing")


@dataclass(frozen=True, slots=True)
class Joined:
    """The sender has the token and requests membership (3.3)."""

    reads: ClassVar = ("configuration {configuration}",)

    configuration: Annotated[int, Field("Q", "", "in which the token was passed")]


@dataclass(frozen=True, slots=True)
class Whole:
    """The receiver has, also on disk, all events that the region's streams had when they were recovered."""

    reads: ClassVar = ("configuration {configuration}",)

    configuration: Annotated[int, Field("Q", "", "in which that holds")]


@dataclass(frozen=True, slots=True)
class Status:
    """The sender's state, for its configuration service: sent first, on every CONFIGURATION, and when the
    disk becomes full or works again (3.3).
    """

    reads: ClassVar = ("configuration {configuration}", "committed {cnt}")

    configuration: Annotated[int, Field("Q", "", "the last configuration of this state; 0: none")]
    cnt: Annotated[int, Field("Q", SEQ, "sum of the committed counters of the region's own streams")]
    disk: Annotated[int, Field("B", "", "whether more can be stored", DiskState)]

    def check(self) -> None:
        """Raise RemoteProtocolError for a counter beyond the limit."""
        check_number("STATUS", self.cnt, SEQ_MAX)

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be stored."""
        return self.disk == DiskState.FULL
