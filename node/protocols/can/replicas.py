"""Nodes that have copies of another one's zones (Meghdoot, 4.1), and take these over when it fails.

Its neighbours know a node's replicas as its first heirs, so that what is asked of a zone may be asked of any
of them. A replica hears from the node that it follows what that one hears of its neighbours; it speaks to
nobody else, and no zone is its own. What the application has for the zones is the application's to send.
"""

from collections.abc import Callable
from dataclasses import dataclass

from node.core.peer_pool import Address
from node.protocols.can.claims import Claims, Holder
from node.protocols.can.layers import Application
from node.protocols.can.messages import Copy
from node.protocols.can.takeover import Takeover
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.reachability import Reachability

REPLICAS_MAX = 64


@dataclass(slots=True)
class Replicas:
    """Of one node, and what it is to another."""

    claims: Claims
    takeover: Takeover
    reach: Reachability
    application: Application
    homeless: Callable[[], None]

    # --- Of this node

    def add(self, node: NodeHandle) -> None:
        """A node that joins gets copies; it is told so again if it asks again."""
        own = self.claims.own
        if node not in own.replicas:
            if len(own.replicas) >= REPLICAS_MAX:
                return
            own.replicas = (*own.replicas, node)
        self.reach.send(node.address, Copy(own.node.id), *own.told())
        for holder in list(self.claims.others.values()):
            self.reach.send(node.address, *holder.told(), *holder.named())
        self._changed()

    def remove(self, node: NodeHandle) -> None:
        """A node failed, or has left."""
        own = self.claims.own
        if node in own.replicas:
            own.replicas = tuple(each for each in own.replicas if each != node)
            self._changed()

    def adopt(self, nodes: tuple[NodeHandle, ...]) -> None:
        """Those of a node whose zones this one has taken over, as one of its replicas."""
        for node in nodes:
            self.add(node)

    def _changed(self) -> None:
        self.takeover.name_heirs()
        self.application.zones_changed()

    def introduce(self, holder: Holder) -> None:
        """What this node hears of others its replicas hear, too."""
        for node in self.claims.own.replicas:
            self.reach.send(node.address, *holder.told())

    # --- This node as another's

    def follow(self, sender: Address) -> None:
        """Have copies of a node's zones, which are told next."""
        if not self.claims.own.versions:
            self.claims.original = sender

    def look_after(self) -> None:
        """If the node that is followed has no zone any more, this one has nothing to be there for."""
        original = self.claims.original
        if original is not None and not self.claims.held:
            self.claims.original = None
            if not self.claims.own.versions:
                self.homeless()
