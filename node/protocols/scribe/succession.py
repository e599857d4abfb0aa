"""How a node becomes a topic's root, and ceases to be it, without loss of events that another root accepted.

A new root asks the nodes nearest to it, which hold the former root's state; until they have sent what they
have, neither its members nor its children start. It repeats requests for missing events; events that no node
sends within a time are lost. If the ring changes all the time, that time ends when all stores have expired. A
former root, after a closer node came or a partition healed, sends its progress to the new one and stays in
the tree until the new one can have fetched the rest.
"""

from collections.abc import Callable
from dataclasses import replace

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect
from node.protocols.pastry.ids import distance
from node.protocols.pastry.leaf_set import LeafSet
from node.protocols.scribe.messages import Fetched
from node.protocols.scribe.parameters import ScribeParameters
from node.protocols.scribe.replay import Replay
from node.protocols.scribe.topic import StreamGap, Topic
from node.protocols.scribe.tree import TopicTrees

HAND_OVER_US = 10_000_000  # enough for several nodes on the way to learn of the new root
# wait of a root without stored events, if all arriving events are later, before it begins with them
FIRST_RETRANSMITS = 3
GAP_RETRANSMITS = 16
"""Wait before a root gives up a gap in its stored events, since the last change of the ring. A node that
seems to have failed may have the missing events, and is probed again twice in this time.
"""
LEFT_RETRANSMITS = 8  # time in which a node that lost contact with all others makes no decision


class RootSuccession:
    """Succession of roots at one node (`layers.SuccessionPolicy`)."""

    def __init__(
        self,
        parameters: ScribeParameters,
        trees: TopicTrees,
        events: Replay,
        emit: Callable[[PeerEffect], None],
    ) -> None:
        self._parameters = parameters
        self._trees = trees
        self._events = events
        self._emit = emit
        self._has_others = False
        self._left_us: int | None = None  # time since which there are no other nodes, if there were any
        trees.carry[Fetched] = self._fetched

    # --- New root

    def become_root(self, topic: Topic) -> None:
        """See `layers.SuccessionPolicy`."""
        if topic.is_root:
            return
        topic.is_root, topic.is_joining, topic.parent, topic.path = True, False, None, ()
        topic.is_handing_over, topic.root_since_us = False, self._trees.now_us
        self._emit(m.Log("became_root", {"topic": f"{topic.key:032x}"}))
        self._trees.send_paths(topic)
        topic.asked, topic.nearest = set(), set()
        self._ask_nearest(topic)
        topic.is_settling = (bool(topic.asked) or self.is_just_left) and not topic.has_positions
        if not topic.is_settling:
            self._trees.attached(topic)

    def _ask_nearest(self, topic: Topic) -> None:
        """Ask the nodes that are newly among the nearest; they may hold another root's state."""
        if self._parameters.is_best_effort:
            return
        nearest = self._trees.pastry.leaf_set.nearest(topic.key, self._parameters.replicas)
        before, topic.nearest = topic.nearest, {node.address for node in nearest}
        topic.asked &= topic.nearest
        for address in sorted(topic.nearest - before):
            topic.root_since_us = self._trees.now_us
            topic.asked.add(address)
            self._events.ask_before(topic, address)
            self._events.ask(topic, address, is_last_told=True)

    def resumed(self) -> None:
        """Ask all nearest nodes again, after this node did not run: others may have been roots meanwhile."""
        for topic in self._trees.topics.values():
            if topic.is_root:
                topic.nearest = set()
                self._ask_nearest(topic)

    def _fetched(self, topic: Topic, sender: Address, message: Fetched) -> None:
        topic.asked.discard(sender)
        if not topic.asked:
            self._settle(topic)

    def has_waited(self, topic: Topic) -> bool:
        """Return whether the root had time to get the former root's state."""
        waited_us = self._trees.now_us - topic.root_since_us
        return not topic.asked or waited_us >= self._parameters.retransmit_us

    def has_all_told(self, topic: Topic) -> bool:
        """See `layers.SuccessionPolicy`."""
        waited_us = self._trees.now_us - topic.root_since_us
        has_told = not topic.asked or waited_us >= LEFT_RETRANSMITS * self._parameters.retransmit_us
        return has_told and not self.may_be_divided(topic)

    def may_be_divided(self, topic: Topic) -> bool:
        """See `layers.SuccessionPolicy`."""
        pastry = self._trees.pastry
        silent = pastry.reach.lately_silent(LEFT_RETRANSMITS * self._parameters.retransmit_us)
        if silent:
            known = sorted(
                [pastry.own, *pastry.leaf_set.members, *silent],
                key=lambda each: distance(each.id, topic.key),
            )
            if not set(silent).isdisjoint(known[: 1 + self._parameters.replicas]):
                topic.divided_us = self._trees.now_us
        return self._trees.now_us - topic.divided_us < self._parameters.retransmit_us

    def has_sought(self, topic: Topic) -> bool:
        """See `layers.SuccessionPolicy`."""
        now_us, retransmit_us = self._trees.now_us, self._parameters.retransmit_us
        if now_us - topic.sought_us > GAP_RETRANSMITS * retransmit_us:
            topic.seeking_since_us = now_us
        if self._is_lost(topic.root_since_us, topic.seeking_since_us):
            return True
        if now_us - topic.sought_us >= retransmit_us:
            topic.sought_us = now_us
            for address in sorted(topic.nearest | topic.children.keys()):
                self._events.ask_before(topic, address)
        return False

    def _is_lost(self, changed_us: int, missed_us: int, retransmits: int = GAP_RETRANSMITS) -> bool:
        """Return whether missing events are lost.

        They are lost after a time without change of the ring, or when all stores have expired.
        """
        patience_us, now_us = retransmits * self._parameters.retransmit_us, self._trees.now_us
        kept_us = self._parameters.buffer_us
        return now_us - changed_us >= min(patience_us, kept_us) or now_us - missed_us >= kept_us

    @property
    def is_just_left(self) -> bool:
        """Whether all other nodes seem to have failed lately, so that this node is probably cut off.

        If it failed before it reaches them again, events that it acknowledged would be lost, and members that
        start with it miss events of the other nodes.
        """
        if self._left_us is None or self._parameters.is_best_effort:
            return False
        return self._trees.now_us - self._left_us < LEFT_RETRANSMITS * self._parameters.retransmit_us

    def _settle(self, topic: Topic) -> None:
        """Start members and children that joined meanwhile, unless events are still missing."""
        if topic.is_settling and not topic.has_gap and not self.is_just_left:
            topic.is_settling = False
            self._trees.attached(topic)

    def look_after_root(self, topic: Topic, *, is_behind: bool) -> None:
        """Request missing events again, or give them up. is_behind: whether a replica has more."""
        ahead = self._nodes_ahead(topic)
        missing = is_behind or bool(ahead)
        for stream, state in topic.streams.items():
            gap = state.gap
            if not state.early or gap.next != state.next:
                state.gap = StreamGap(state.next, self._trees.now_us, self._trees.now_us)
            elif not self._is_lost(
                gap.changed_us, gap.missed_us, GAP_RETRANSMITS if state.kept else FIRST_RETRANSMITS
            ):
                missing = True
            else:
                self._events.give_up(topic, stream, min(state.early))
        if topic.asked and self._trees.now_us - topic.fetched_us >= self._parameters.retransmit_us:
            for address in sorted(topic.asked):
                self._events.ask(topic, address, is_last_told=True)
        if missing:
            nearest = self._trees.pastry.leaf_set.nearest(topic.key, self._parameters.replicas)
            addresses = (*(node.address for node in nearest), *topic.children, *ahead)
            self._events.fetch_from(topic, *dict.fromkeys(addresses))
        if self.has_waited(topic):
            self._settle(topic)

    def _nodes_ahead(self, topic: Topic) -> list[Address]:
        """Return nodes that lately reported more than this root has, and still have more."""
        since_us = self._trees.now_us - GAP_RETRANSMITS * self._parameters.retransmit_us
        topic.ahead = {
            address: (told_us, positions)
            for address, (told_us, positions) in topic.ahead.items()
            if told_us > since_us and topic.is_behind(positions)
        }
        return list(topic.ahead)

    # --- Former root

    def new_leafs(self, leaf_set: LeafSet) -> None:
        """Process a change of the ring.

        This node may no longer be the root, or others may have missing events. A node that stored a root's
        state informs the next root, too: the former root and its other replicas may be gone.
        """
        had_others, self._has_others = self._has_others, bool(leaf_set.members)
        if had_others != self._has_others:
            self._left_us = self._trees.now_us if had_others else None
        for topic in self._trees.topics.values():
            for state in topic.streams.values() if topic.is_root else ():
                state.gap = replace(state.gap, changed_us=self._trees.now_us)
            closest = leaf_set.closest(topic.key)
            if closest == leaf_set.own:
                if topic.is_root:
                    self._ask_nearest(topic)
                continue
            if topic.is_root:
                topic.is_root = topic.is_settling = False
                topic.is_handing_over, topic.root_since_us = bool(topic.streams), self._trees.now_us
                self._emit(m.Log("root_no_more", {"topic": f"{topic.key:032x}", "peer": None}))
                # it learns of the events stored here
                self._events.ask(topic, closest.address, is_last_told=True)
                self._trees.seek_parent(topic)
            elif topic.kept_for not in {None, closest.address}:
                topic.kept_for = closest.address
                self._events.ask(topic, closest.address, is_last_told=True)

    def look_after(self, topic: Topic) -> None:
        """See `layers.SuccessionPolicy`."""
        if topic.untold and not self.may_be_divided(topic):
            for address in sorted(topic.untold):
                self._trees.pastry.send(Fetched(topic.key), address)
            topic.untold.clear()
        if topic.is_handing_over and self._trees.now_us - topic.root_since_us > HAND_OVER_US:
            topic.is_handing_over = False
