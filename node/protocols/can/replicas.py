"""Replicas: nodes with copies of another node's zones (Meghdoot, 4.1) that take them over when it fails.

Neighbours know a node's replicas as its first successors, so that they can send a request for a zone to any
of them. The followed node forwards to its replicas what it learns of its neighbours. A replica contacts no
other node and owns no zone. The application copies its own data for the zones.
"""

from collections.abc import Callable
from dataclasses import dataclass

from node.core.peers.peer_pool import Address
from node.protocols.can.claims import ZoneClaims, ZoneHolder
from node.protocols.can.layers import CanApplication
from node.protocols.can.messages import Copy, Disown
from node.protocols.can.takeover import TakeoverProtocol
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.reachability import Reachability

REPLICAS_MAX = 64


@dataclass(slots=True)
class Replicas:
    """The replicas of one node, and its own role as a replica."""

    claims: ZoneClaims
    takeover: TakeoverProtocol
    reach: Reachability
    application: CanApplication
    homeless: Callable[[], None]
    _turn: int = 0

    # --- Replicas of this node

    def add(self, node: NodeHandle) -> None:
        """Make a joining node a replica; repeat the messages if it asks again."""
        own = self.claims.own
        if node not in own.replicas:
            others = tuple(
                each for each in own.replicas if each.address != node.address
            )  # not an earlier process generation
            if len(others) >= REPLICAS_MAX:
                return
            own.replicas = (*others, node)
        self.reach.send(node.address, Copy(own.node.id), *own.claim_messages())
        for holder in list(self.claims.others.values()):
            self.reach.send(node.address, *holder.claim_messages(), *holder.successor_messages())
        self._changed()

    def remove(self, node: NodeHandle) -> None:
        """Remove a replica that failed or left."""
        own = self.claims.own
        if node in own.replicas:
            own.replicas = tuple(each for each in own.replicas if each != node)
            self._changed()

    def adopt(self, nodes: tuple[NodeHandle, ...]) -> None:
        """Add the other replicas of the node whose zones this one, also a replica, has taken over."""
        for node in nodes:
            self.add(node)

    def dismiss(self) -> None:
        """Release all replicas, since this node has no zone any more."""
        own = self.claims.own
        for node in own.replicas:
            self.reach.send(node.address, Disown(own.node.id, own.sequence))
        own.replicas = ()

    def claimed(self, node: NodeHandle, count: int) -> None:
        """Process the number of zones that a node reports of itself.

        A node with zones is no replica. A node without zones may consider itself a replica of this one
        although it was removed when it seemed to have failed; it is released.
        """
        own = self.claims.own
        if count:
            self.remove(node)
        elif own.versions and node not in own.replicas:
            self.reach.send(node.address, Disown(own.node.id, own.sequence))

    def _changed(self) -> None:
        self.takeover.announce_successors()
        self.application.zones_changed()

    def introduce(self, holder: ZoneHolder) -> None:
        """Forward a node's claims to all replicas."""
        replicas = self.claims.own.replicas
        messages = holder.claim_messages() if replicas else ()
        for node in replicas:
            self.reach.send(node.address, *messages)

    # --- This node as a replica

    def follow(self, sender: Address) -> None:
        """Become a replica of the sender, which sends its zones next.

        Refuse if this node got a zone since it asked.
        """
        own = self.claims.own
        if own.versions:
            self.reach.send(sender, Disown(own.node.id, own.sequence))
            return
        own.sequence += 2  # replaces the announcement of a zone that this node was to get
        before, self.claims.original = self.claims.original, sender
        if before not in {None, sender}:
            self.reach.send(before, Disown(own.node.id, own.sequence))

    def addressed(self, sender: Address) -> None:
        """Process a HEARTBEAT. Only neighbours and the followed node should send one."""
        own = self.claims.own
        if not own.versions and sender != self.claims.original:
            self.reach.send(sender, Disown(own.node.id, own.sequence))

    def disowned(self, node: NodeHandle) -> None:
        """End the replica relation with a node, in either direction."""
        self.remove(node)
        if node.address == self.claims.original:
            self._stop_following()

    def look_after(self) -> None:
        """Check the followed node, and repair lost messages about one neighbour in turn.

        Stop following a node that has no zone any more.
        """
        if self.claims.original is None:
            self._repeat_claims()
        elif not self.claims.held:
            self._stop_following()
        else:
            for address in self.claims.strangers():
                self.claims.forget(address)
            others = [each.node for each in self.claims.others.values()]
            self._turn = (self._turn + 1) % len(others)
            self.reach.probe(others[self._turn])

    def _repeat_claims(self) -> None:
        """Repeat to all replicas the claims of one neighbour in turn."""
        others = list(self.claims.others.values())
        if self.claims.own.replicas and others:
            self._turn = (self._turn + 1) % len(others)
            holder = others[self._turn]
            messages = (*holder.claim_messages(), *holder.successor_messages())
            for node in self.claims.own.replicas:
                self.reach.send(node.address, *messages)

    def _stop_following(self) -> None:
        self.claims.original = None
        if not self.claims.own.versions:
            self.homeless()
