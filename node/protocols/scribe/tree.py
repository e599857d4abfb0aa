"""The trees of topics: joining, leaving, multicast, and repair.

2002, III: a join is routed to the topic's key; every node on its way becomes a forwarder and adopts the
previous node. The papers leave some cases open. A node that forwards a join sends it as its own; the node
where it began does not adopt itself; an adopted node is notified and so learns its parent. A node that is
joining itself adopts children, too, and answers them when it has a parent.

Other modules: `replay` (transfer of events), `balance` (which children a node keeps), `succession` (which
node is the root).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect
from node.protocols.pastry.overlay import Pastry
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.scribe import messages as wire
from node.protocols.scribe.layers import (
    AccessPolicy,
    Balance,
    EventTransfer,
    Handlers,
    SuccessionPolicy,
    TreeListener,
)
from node.protocols.scribe.parameters import ScribeParameters
from node.protocols.scribe.topic import Topic, TreeChild, by_stream

REJOIN: str = "rejoin"
TREE_TICK: m.Timer = ("trees",)
DEPTH_MAX = 64  # a longer path is a loop
REFRESHES_MISSED = 3  # missing messages until a child is dropped


class TopicTrees:
    """All topics of a node, as an application of Pastry
    (`node.protocols.pastry.overlay.PastryApplication`).
    """

    def __init__(
        self,
        parameters: ScribeParameters,
        rng: m.Randomness,
        emit: Callable[[PeerEffect], None],
        listener: TreeListener,
        handlers: Handlers,
    ) -> None:
        self.pastry: Pastry
        self.balance: Balance
        self.access: AccessPolicy
        self.events: EventTransfer
        self.succession: SuccessionPolicy
        self.handlers = handlers
        self.topics: dict[int, Topic] = {}
        self._parameters = parameters
        self._rng = rng
        self._emit = emit
        self._listener = listener
        self.carry: dict[type, Callable[[Topic, Address, Any], None]] = {
            wire.Join: self._joined,
            wire.Adopted: self._adopted,
            wire.Refused: self._refused,
            wire.TreePath: self._path,
            wire.Leave: self._left,
            wire.Multicast: self._multicast,
            wire.TreeHeartbeat: self._heartbeat,
            wire.Refresh: self._refresh,
        }
        self.opening: set[type] = set()  # message types for which an unknown topic is created
        self.unknown: dict[type, Callable[[int], Any]] = {  # answers for an unknown topic
            wire.Join: wire.Refused,
            wire.Adopted: wire.Leave,
            wire.Multicast: wire.Leave,
            wire.TreeHeartbeat: wire.Leave,
            wire.Refresh: wire.Refused,
        }

    @property
    def now_us(self) -> int:
        """Time of the current input."""
        return self.pastry.reach.now_us

    def entries(self) -> int:
        """Return the number of children in all topics together."""
        return sum(len(topic.children) for topic in self.topics.values())

    def neighbours(self) -> set[Address]:
        """Return parents and children in all trees."""
        parents = {topic.parent.address for topic in self.topics.values() if topic.parent is not None}
        return parents.union(*(topic.children for topic in self.topics.values()))

    # --- Membership

    def topic(self, key: int) -> Topic:
        """Return a topic at this node; create it if unknown."""
        topic = self.topics.get(key)
        if topic is None:
            topic = self.topics[key] = Topic(key)
        return topic

    def join(self, key: int, credentials: int = 0) -> None:
        """Become a member of a topic."""
        topic = self.topic(key)
        topic.is_member, topic.credentials = True, credentials
        if topic.is_attached:
            if self.access.may_stay(topic):
                self._listener.on_joined(topic)
        elif not topic.is_joining:
            self.seek_parent(topic)

    def leave(self, key: int) -> None:
        """End the membership of a topic."""
        topic = self.topic(key)
        topic.is_member, topic.has_joined, topic.credentials = False, False, 0
        self._leave_if_needless(topic)

    def start(self) -> None:
        """Start the periodic checks."""
        self._emit(m.SetTimer(TREE_TICK, self.now_us + self._parameters.tree_heartbeat_us))

    # --- Joining

    def detach(self, topic: Topic) -> None:
        """Drop the parent; a new one is needed."""
        topic.parent, topic.path, topic.is_joining = None, (), True

    def seek_parent(
        self, topic: Topic, avoided: Sequence[Address] | None = None, *, is_fault: bool = False
    ) -> None:
        """Join by the usual route, or by a random other one whose first hop is not among `avoided`."""
        self.detach(topic)
        self._set_retry(topic)
        if avoided is None and topic.is_astray:
            avoided = ()
        topic.is_astray = False
        join = self._join_of(topic)
        if is_fault:
            join = self.handlers.fault_handler(join)
        if avoided is None:
            self.pastry.route(join, topic.key)
        elif not self.pastry.route_aside(join, topic.key, avoided):
            self.pastry.route(replace(join, errand=wire.JoinRouting.NO_DETOUR), topic.key)

    def join_at(self, topic: Topic, address: Address, hops: int = 1) -> None:
        """Join at a node; the old parent remains until the new one adopts this node."""
        if topic.is_joining:
            self._set_retry(topic)
        self.pastry.send(self._join_of(topic, hops, wire.JoinRouting.SENT), address)

    def _set_retry(self, topic: Topic) -> None:
        spread_us = int(self._parameters.join_retry_us * self._rng.uniform(0.75, 1.25))
        self._emit(m.SetTimer((REJOIN, f"{topic.key:032x}"), self.now_us + spread_us))

    def _join_of(self, topic: Topic, hops: int = 1, errand: int = wire.JoinRouting.ROUTED) -> wire.Join:
        own, is_new, shown = self.pastry.own, int(not topic.has_positions), topic.credentials
        if not topic.is_member and topic.children:
            shown = next(iter(topic.children.values())).credentials
        positions = topic.positions()
        return wire.Join(topic.key, own.id, own.address, errand, hops, own.address, is_new, shown, positions)

    def forward(self, message: Any, key: int, following: NodeHandle) -> Any | None:
        """See `overlay.PastryApplication`: adopt the sender of a join, and join on its way if necessary."""
        if not isinstance(message, wire.Join) or message.address == self.pastry.own.address:
            return message
        onward = self.balance.passes(key, message)
        if onward is not None:
            return onward
        topic = self.topic(key)
        if topic.is_below(message.id, message.address):
            return message  # a node further on is not above the sender: at the latest the root
        is_on_its_way = topic.is_on_its_way
        if self.adopt(topic, message) and not is_on_its_way:
            topic.is_joining = True
            self._set_retry(topic)
            return self._join_of(topic)
        return None

    def deliver(self, message: Any, key: int) -> None:
        """See `overlay.PastryApplication`: this node is the topic's root."""
        topic = self.topic(key)
        self.succession.become_root(topic)
        if isinstance(message, wire.Join):
            if message.address != self.pastry.own.address:
                self.adopt(topic, message)
        elif isinstance(message, wire.Publish):
            self._listener.on_root(topic, message)

    def _joined(self, topic: Topic, sender: Address, join: wire.Join) -> None:
        """Process a join sent here at another node's request, which may be outdated."""
        if topic.is_root or (topic.is_needed and topic.is_on_its_way):
            self.adopt(topic, join)
        else:
            self.pastry.send(wire.Refused(topic.key), join.address)

    def adopt(self, topic: Topic, join: wire.Join) -> bool:
        """Make the sender of a join a child; return whether it was adopted."""
        child = NodeHandle(join.id, join.address)
        if join.address == self.pastry.own.address or topic.is_below(join.id, join.address):
            self.pastry.send(wire.Refused(topic.key), child.address)
            return False
        if not self.access.may_join(topic, join) or self.balance.hands_on(topic, join):
            return False
        if not (topic.has_positions or topic.is_attached or topic.is_root or join.is_new):
            topic.start_at(join.positions)
            topic.has_positions = True
        known = topic.children.get(child.address)
        if known is not None and known.waiting is None:
            self.pastry.miss(child)  # the child did not receive the answer
        topic.children[child.address] = TreeChild(
            child,
            self.now_us,
            join.positions,
            bool(join.is_new),
            join.hops,
            join.errand == wire.JoinRouting.NO_DETOUR,
            credentials=join.credentials,
        )
        if topic.is_attached:
            self._welcome(topic, topic.children[child.address])
        self.handlers.join_handler(join)
        self.balance.adopted()
        return True

    def _welcome(self, topic: Topic, child: TreeChild) -> None:
        """Send a child the positions from which it receives events, and the stored events from there."""
        asked, child.waiting = by_stream(child.waiting or ()), None
        positions = tuple(
            wire.Position(stream, asked.get(stream, state.next if child.is_new else 1))
            for stream, state in sorted(topic.streams.items())
        )
        if topic.grants is not None:
            self.pastry.send(topic.grants, child.node.address)
        self.pastry.send(wire.Adopted(topic.key, self.pastry.own.id, positions), child.node.address)
        self._tell_path(topic, child)
        self.events.replay(topic, child.node, positions)
        if topic.is_behind(wire.Position(*each) for each in asked.items()):
            self.events.ask(topic, child.node.address)

    def send_paths(self, topic: Topic) -> None:
        """Send all children the path from the root."""
        for child in topic.children.values():
            if child.waiting is None:
                self._tell_path(topic, child)

    def _tell_path(self, topic: Topic, child: TreeChild) -> None:
        path = (*topic.path, self.pastry.own.id)
        self.pastry.send(wire.TreePath(topic.key, tuple(map(wire.PathNode, path))), child.node.address)

    def _adopted(self, topic: Topic, sender: Address, message: wire.Adopted) -> None:
        if topic.is_root or not topic.is_needed:
            self.pastry.send(wire.Leave(topic.key), sender)
            return
        if topic.parent is not None and topic.parent.address != sender:
            self.pastry.send(wire.Leave(topic.key), topic.parent.address)
        if topic.parent_address != sender:
            self._emit(m.Log("adopted", {"topic": f"{topic.key:032x}", "peer": sender}))
        topic.parent = NodeHandle(message.id, sender)
        topic.heard_us, topic.refreshed_us, topic.is_joining = self.now_us, self.now_us, False
        if not topic.has_positions:
            topic.start_at(message.positions)
        self._emit(m.CancelTimer((REJOIN, f"{topic.key:032x}")))
        self.attached(topic)
        if topic.is_behind(message.positions):  # it may answer an older join than another parent did
            self.events.fetch_from(topic, sender)

    def attached(self, topic: Topic) -> None:
        """Start membership and children, which waited for a place in the tree."""
        topic.has_positions = True
        if topic.is_member and self.access.may_stay(topic):
            self._listener.on_joined(topic)
        for child in topic.children.values():
            if child.waiting is not None:
                self._welcome(topic, child)

    def _refused(self, topic: Topic, sender: Address, message: wire.Refused) -> None:
        """Process a refusal by the parent, or of a join that would form a loop: try any other route."""
        if topic.parent_address == sender:
            topic.is_astray = True
            self._lose_parent(topic, "parent_refused")
        elif topic.is_joining:
            topic.is_astray = True
            self._set_retry(topic)

    def _path(self, topic: Topic, sender: Address, message: wire.TreePath) -> None:
        if sender != topic.parent_address:
            return
        path = tuple(node.id for node in message.nodes)
        if self.pastry.own.id in path or len(path) > DEPTH_MAX:
            self._emit(m.Log("loop", {"topic": f"{topic.key:032x}"}))
            self.pastry.send(wire.Leave(topic.key), sender)
            self.detach(topic)
            topic.is_astray = True
            self._set_retry(topic)
        elif path != topic.path:
            topic.path = path
            self.send_paths(topic)

    # --- Leaving

    def _left(self, topic: Topic, sender: Address, message: wire.Leave) -> None:
        topic.children.pop(sender, None)
        self._leave_if_needless(topic)

    def _leave_if_needless(self, topic: Topic) -> None:
        if not topic.is_needed and not topic.is_root:
            if topic.parent is not None:
                self.pastry.send(wire.Leave(topic.key), topic.parent.address)
                self._log("left", topic)
            topic.parent, topic.path, topic.is_joining = None, (), False
            self._emit(m.CancelTimer((REJOIN, f"{topic.key:032x}")))

    # --- Events

    def _multicast(self, topic: Topic, sender: Address, batch: wire.Multicast) -> None:
        if sender == topic.parent_address:
            topic.heard_us = self.now_us
        elif not (topic.is_needed or topic.is_root or topic.lacks(batch, sender)):
            self.pastry.send(wire.Leave(topic.key), sender)
            return
        if self.events.take(topic, batch):
            self.events.fetch_from(topic, topic.parent.address if topic.parent else sender)

    # --- Repair

    def _heartbeat(self, topic: Topic, sender: Address, message: wire.TreeHeartbeat) -> None:
        if sender != topic.parent_address:
            if not topic.is_joining:
                self.pastry.send(wire.Leave(topic.key), sender)
            return
        topic.heard_us = self.now_us
        if topic.is_behind(message.positions):
            self.events.fetch_from(topic, sender)

    def _refresh(self, topic: Topic, sender: Address, message: wire.Refresh) -> None:
        child = topic.children.get(sender)
        if child is None:
            self.pastry.send(wire.Refused(topic.key), sender)
            return
        child.heard_us = self.now_us
        if topic.is_behind(message.positions):
            self.events.fetch_from(topic, sender)

    def failed(self, node: NodeHandle) -> None:
        """See `overlay.PastryApplication`."""
        for topic in list(self.topics.values()):
            if topic.parent == node:
                self._lose_parent(topic, "parent_lost")
            if topic.children.pop(node.address, None) is not None:
                self._leave_if_needless(topic)
            topic.replicas.pop(node.address, None)

    def timer(self, timer: m.Timer) -> bool:
        """Process a timer; return whether it belongs to the trees."""
        if timer == TREE_TICK:
            self._emit(m.SetTimer(TREE_TICK, self.now_us + self._parameters.tree_heartbeat_us))
            for topic in list(self.topics.values()):
                self._look_after(topic)
                self.balance.look_after(topic)
            self.balance.adopted()
        elif timer[0] == REJOIN:
            topic = self.topics[int(timer[1], 16)]
            if topic.is_joining and topic.is_needed:
                self.seek_parent(topic)
        else:
            return self.balance.timer(timer)
        return True

    def tick(self) -> None:
        """Check for silent parents: probe each first, and leave it if it stays silent."""
        timeout_us = self._parameters.tree_timeout_us
        for topic in self.topics.values():
            if topic.parent is None:
                continue
            silent_us = self.now_us - topic.heard_us
            if silent_us > 2 * timeout_us:
                self._lose_parent(topic, "parent_silent")
            elif silent_us > timeout_us and topic.missed_us < topic.heard_us:
                topic.missed_us = self.now_us
                self._log("parent_missed", topic)
                self.pastry.miss(topic.parent)

    def _lose_parent(self, topic: Topic, event: str) -> None:
        self._log(event, topic)
        self.seek_parent(topic, is_fault=True)

    def _log(self, event: str, topic: Topic) -> None:
        self._emit(m.Log(event, {"topic": f"{topic.key:032x}", "peer": topic.parent_address}))

    def _look_after(self, topic: Topic) -> None:
        now_us = self.now_us
        for state in topic.streams.values():
            state.trim(now_us - self._parameters.buffer_us, self._parameters.buffer_events)
        silent_us = now_us - REFRESHES_MISSED * self._parameters.refresh_us
        for child in [child for child in topic.children.values() if child.heard_us < silent_us]:
            del topic.children[child.node.address]
        self.succession.look_after(topic)
        self._leave_if_needless(topic)
        if topic.is_attached and topic.was_quiet(now_us - self._parameters.tree_heartbeat_us):
            beat = wire.TreeHeartbeat(topic.key, topic.positions())
            for child in topic.children.values():
                self.pastry.send(beat, child.node.address)
        if topic.parent is not None and now_us - topic.refreshed_us >= self._parameters.refresh_us:
            self._refresh_at(topic, topic.parent)

    def _refresh_at(self, topic: Topic, parent: NodeHandle) -> None:
        topic.refreshed_us = self.now_us
        self.pastry.send(wire.Refresh(topic.key, topic.positions()), parent.address)

    # --- Messages

    def receive(self, sender: Address, message: Any) -> bool:
        """Process a message; return whether it belongs to the trees."""
        kind = type(message)
        carry = self.carry.get(kind)
        if carry is None:
            return False
        topic = self.topic(message.topic) if kind in self.opening else self.topics.get(message.topic)
        if topic is not None:
            carry(topic, sender, message)
        elif kind in self.unknown:
            self.pastry.send(self.unknown[kind](message.topic), sender)
        return True
