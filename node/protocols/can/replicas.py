"""Nodes that have copies of another one's zones (Meghdoot, 4.1), and take these over when it fails.

Its neighbours know a node's replicas as its first heirs, so that what is asked of a zone may be asked of any
of them. A replica hears from the node that it follows what that one hears of its neighbours; it speaks to
nobody else, and no zone is its own. What the application has for the zones is the application's to send.
"""

from collections.abc import Callable
from dataclasses import dataclass

from node.core.peers.peer_pool import Address
from node.protocols.can.claims import Claims, Holder
from node.protocols.can.layers import Application
from node.protocols.can.messages import Copy, Disown
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
    _turn: int = 0

    # --- Of this node

    def add(self, node: NodeHandle) -> None:
        """A node that joins gets copies; it is told so again if it asks again."""
        own = self.claims.own
        if node not in own.replicas:
            others = tuple(
                each for each in own.replicas if each.address != node.address
            )  # not an earlier life
            if len(others) >= REPLICAS_MAX:
                return
            own.replicas = (*others, node)
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

    def dismiss(self) -> None:
        """This node has no zone any more."""
        own = self.claims.own
        for node in own.replicas:
            self.reach.send(node.address, Disown(own.node.id, own.sequence))
        own.replicas = ()

    def claimed(self, node: NodeHandle, count: int) -> None:
        """A node said itself how many zones it has: with any it is no replica; with none it may think that it
        is one of this node's, though it was removed when it seemed to have failed.
        """
        own = self.claims.own
        if count:
            self.remove(node)
        elif own.versions and node not in own.replicas:
            self.reach.send(node.address, Disown(own.node.id, own.sequence))

    def _changed(self) -> None:
        self.takeover.name_heirs()
        self.application.zones_changed()

    def introduce(self, holder: Holder) -> None:
        """What this node hears of others its replicas hear, too."""
        replicas = self.claims.own.replicas
        told = holder.told() if replicas else ()
        for node in replicas:
            self.reach.send(node.address, *told)

    # --- This node as another's

    def follow(self, sender: Address) -> None:
        """Have copies of a node's zones, which are told next; not if this one has been given a zone since it
        asked.
        """
        own = self.claims.own
        if own.versions:
            self.reach.send(sender, Disown(own.node.id, own.sequence))
            return
        own.sequence += 2  # others may have been told of a zone that it was to get, by the first
        before, self.claims.original = self.claims.original, sender
        if before not in {None, sender}:
            self.reach.send(before, Disown(own.node.id, own.sequence))

    def addressed(self, sender: Address) -> None:
        """A node says HEARTBEAT, which only neighbours and the node that is followed should."""
        own = self.claims.own
        if not own.versions and sender != self.claims.original:
            self.reach.send(sender, Disown(own.node.id, own.sequence))

    def disowned(self, node: NodeHandle) -> None:
        """What there was between two nodes is over."""
        self.remove(node)
        if node.address == self.claims.original:
            self._stop_following()

    def look_after(self) -> None:
        """If the node that is followed has no zone any more, this one has nothing to be there for. Else look
        at one of those beside it, another one each time, for what was told of them may have been lost.
        """
        if self.claims.original is None:
            self._tell_again()
        elif not self.claims.held:
            self._stop_following()
        else:
            for address in self.claims.strangers():
                self.claims.forget(address)
            others = [each.node for each in self.claims.others.values()]
            self._turn = (self._turn + 1) % len(others)
            self.reach.probe(others[self._turn])

    def _tell_again(self) -> None:
        """Of one of those beside this node, likewise."""
        others = list(self.claims.others.values())
        if self.claims.own.replicas and others:
            self._turn = (self._turn + 1) % len(others)
            holder = others[self._turn]
            told = (*holder.told(), *holder.named())
            for node in self.claims.own.replicas:
                self.reach.send(node.address, *told)

    def _stop_following(self) -> None:
        self.claims.original = None
        if not self.claims.own.versions:
            self.homeless()
