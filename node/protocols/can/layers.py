"""Interfaces between CAN and its application, and between the parts of one CAN node."""

from typing import Any, Literal, Protocol

from node.core.peers.peer_pool import Address
from node.protocols.can.zones import Point, Zone
from node.protocols.reachability.nodes import NodeHandle

Split = tuple[int, float] | Literal["copy"] | None
"""Dimension and coordinate of the split; "copy": the joining node becomes a replica; None: CAN decides."""


class CanApplication(Protocol):
    """The application on top of CAN: its upcalls. Each may call the overlay."""

    def point_of(self, message: Any) -> Point:
        """Return the destination of a routed application message; called by each node on its way."""

    def deliver(self, message: Any) -> None:
        """Process a routed message whose point is in a zone of this node."""

    def receive(self, sender: Address, message: Any) -> None:
        """Process an application message that was sent directly to this node."""

    def split(self, zone: Zone) -> Split:
        """Return the dimension and coordinate at which to split a zone for a joining node.

        None: the middle of the longest side. "copy": do not split; the node becomes a replica of this one
        (listed in `claims.own.replicas`; at the replica, `claims.original` and `claims.held` describe it).
        """

    def sends_on(self, join: Any) -> bool:
        """Return whether the application forwards a node's request for part of this node's zones."""

    def is_shared(self, message: Any) -> bool:
        """Return whether a routed message may be delivered at a replica, too."""

    def gave(self, zone: Zone, to: NodeHandle) -> None:
        """Send a zone's application data to its new owner.

        The zone is all or part of one of this node's zones. Messages to its points follow the data.
        """

    def gained(self, zone: Zone, giver: NodeHandle | None) -> None:
        """Process a zone that this node has now; the giver, if any, sends the application data.

        giver: None if the zone was taken over from a failed node or is the first one; this node itself if it
        was taken over as a replica.
        """

    def zones_changed(self) -> None:
        """Process a change of the zones of this node or of its neighbours."""


class OrphanedZones(Protocol):
    """Takeover of the zones of failed nodes (`node.protocols.can.takeover`)."""

    def claimed(self, zone: Zone) -> None:
        """Remove a zone from the orphaned ones, since a node claims it."""

    def returned(self, node: NodeHandle) -> None:
        """Cancel the takeover for a node that is alive."""


class BoundaryCheck(Protocol):
    """Check that all neighbours are known (`node.protocols.can.boundary`)."""

    def doubt(self) -> None:
        """Schedule a check, since a neighbour may be unknown."""
