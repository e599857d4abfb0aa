"""What a node's trees ask of the layers around them; each is one node's."""

from collections.abc import Iterable
from typing import Protocol

from node.core import machine as m
from node.core.peers.peer_pool import Address
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.scribe.messages import Join, Multicast, Position, Publish
from node.protocols.scribe.topic import Topic


class Listener(Protocol):
    """Who is told what happens in the trees."""

    def on_event(self, topic: Topic, batch: Multicast) -> None:
        """A batch is in order here."""

    def on_joined(self, topic: Topic) -> None:
        """This node, a member, gets everything from now on."""

    def on_root(self, topic: Topic, message: Publish) -> None:
        """Something was published to a topic whose root is here."""


class Balance(Protocol):
    """Who decides which children a node keeps (`node.protocols.scribe.balancing.balance`)."""

    def passes(self, key: int, join: Join) -> Join | None:
        """What a node passes on of a join without becoming a forwarder; None: it has to be one."""

    def hands_on(self, topic: Topic, join: Join) -> bool:
        """Whether another node was asked to adopt the sender of a join in place of this one."""

    def adopted(self) -> None:
        """There is one child more, or some time has passed: others may have to go."""

    def look_after(self, topic: Topic) -> None:
        """Some time has passed."""

    def timer(self, timer: m.Timer) -> bool:
        """A timer fired; whether it is one of these."""


class Succession(Protocol):
    """Who decides whether this node is a root (`node.protocols.scribe.succession`)."""

    def become_root(self, topic: Topic) -> None:
        """The tree begins here. What others have that the node has not is fetched."""

    def has_sought(self, topic: Topic) -> bool:
        """Whether a root may say that what it does not keep is gone; if not, it asks others for that."""

    def has_all_told(self, topic: Topic) -> bool:
        """Whether all who may have more than a root have told it, or had the time to."""

    def may_be_divided(self, topic: Topic) -> bool:
        """Whether a topic's root, or some who hold its state, have lately not been heard of, by any way.

        There may be more on the other side of a cut.
        """

    def look_after(self, topic: Topic) -> None:
        """Some time has passed."""


class Access(Protocol):
    """Who decides who may be in a tree (`node.protocols.scribe.access`)."""

    def may_join(self, topic: Topic, join: Join) -> bool:
        """Whether the sender of a join may; if not, it is told."""

    def may_stay(self, topic: Topic) -> bool:
        """Whether this node may be a member of a tree in which it stands; if not, it is none any more."""


class Upcalls(Protocol):
    """What an application may do to what passes (2002, III.D): the paper's three handlers."""

    def forward_handler(self, topic: Topic, batch: Multicast) -> Multicast:
        """A batch is about to go to children: as it is, or with another payload."""

    def join_handler(self, topic: Topic, join: Join) -> None:
        """A child was added."""

    def fault_handler(self, topic: Topic, join: Join) -> Join:
        """The parent seems to have failed: the join that is sent, as it is or changed."""


class Events(Protocol):
    """Who holds what was published (`node.protocols.scribe.replay`)."""

    def take(self, topic: Topic, batch: Multicast) -> bool:
        """A batch came, whoever sent it; whether something before it is missing."""

    def fetch_from(self, topic: Topic, *addresses: Address) -> None:
        """Ask for what is missing, unless that was asked for just now."""

    def ask(self, topic: Topic, address: Address, *, is_last_told: bool = False) -> None:
        """Ask for everything from here on; if wanted, to be told when that was all."""

    def ask_before(self, topic: Topic, address: Address) -> None:
        """Ask for what is before all that is kept here."""

    def replay(self, topic: Topic, to: NodeHandle, positions: Iterable[Position]) -> tuple[Position, ...]:
        """Send what is here; what is not kept any more is asked for further up, or gone, and returned."""
