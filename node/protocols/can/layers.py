"""What stands on a CAN, and what its parts ask of each other; each is one node's."""

from typing import Any, Literal, Protocol

from node.core.peers.peer_pool import Address
from node.protocols.can.zones import Point, Zone
from node.protocols.reachability.nodes import NodeHandle

Split = tuple[int, float] | Literal["copy"] | None
"""In which dimension and where; a node that joins gets copies instead; or wherever it is."""


class Application(Protocol):
    """What stands on CAN: its upcalls. Each may call the overlay."""

    def point_of(self, message: Any) -> Point:
        """Where a message of the application's that is routed goes to; every node on its way asks."""

    def deliver(self, message: Any, point: Point) -> None:
        """The message's point is in a zone of this node."""

    def receive(self, sender: Address, message: Any) -> None:
        """A message of the application's came from a node, not by its point."""

    def split(self, zone: Zone, joining: NodeHandle) -> Split:
        """In which dimension and where a zone of this node is split for a node that joins; None: at the
        middle of its longest side. "copy": not at all, the node becomes a replica of this one
        (`claims.own.replicas`; there `claims.original` and `claims.held` tell of it).
        """

    def sends_on(self, join: Any) -> bool:
        """A node asks this one for a part of its zones. Whether the application has sent it on instead."""

    def is_shared(self, message: Any) -> bool:
        """Whether a message that is routed may be delivered at a replica, as well."""

    def gave(self, zone: Zone, to: NodeHandle) -> None:
        """This zone, or part of one, is another's now. What the application has for it is to be sent there;
        messages to points in it go there, too, after what is sent now.
        """

    def gained(self, zone: Zone, giver: NodeHandle | None) -> None:
        """This zone is this node's now; the giver, if there is one, sends what it has for it. None: it was
        taken over from a node that failed, or is the first one. The node itself: likewise, as a replica.
        """

    def zones_changed(self) -> None:
        """This node's zones, or those of others beside them, are not as they were."""

    def failed(self, node: NodeHandle) -> None:
        """A node that was known gives no answer any more."""


class Orphans(Protocol):
    """Who sees to it that zones of nodes that failed are taken over (`node.protocols.can.takeover`)."""

    def claimed(self, zone: Zone) -> None:
        """Someone has this zone: if nobody had it, that is over."""

    def returned(self, node: NodeHandle) -> None:
        """A node lives, after all."""


class Boundary(Protocol):
    """Who sees to it that all neighbours are known (`node.protocols.can.boundary`)."""

    def doubt(self) -> None:
        """Something beside this node's zones may belong to a node that is not known."""
