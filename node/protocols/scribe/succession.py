"""How a node becomes a topic's root, and ceases to be it, so that nothing is lost of what another took.

A new root asks the nodes nearest to it, who held the state of the one before; until they have sent what they
have, neither its members nor its children begin. What it misses it asks for again; what nobody sends after a
while, nobody has: also where the ring changes all the time, once nobody keeps anything for so long. Who is
the root no more, since a closer node came or a division has healed, tells the new one how far it has come,
and stays in the tree until that can have fetched the rest.
"""

from collections.abc import Callable
from dataclasses import replace

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect
from node.protocols.pastry.ids import distance
from node.protocols.pastry.leaf_set import LeafSet
from node.protocols.scribe.messages import Fetched
from node.protocols.scribe.parameters import Parameters
from node.protocols.scribe.replay import Replay
from node.protocols.scribe.topic import Gap, Topic
from node.protocols.scribe.tree import Trees

HAND_OVER_US = 10_000_000  # long enough for several nodes on the way to the new root to hear of it
FIRST_RETRANSMITS = 3  # until a root begins with what it has, where all of it comes later
GAP_RETRANSMITS = 16
"""The same within what it has, since the ring last changed: who seems to have failed may have the rest, and
is asked again twice meanwhile.
"""
LEFT_RETRANSMITS = 8  # for so long a node that lost sight of others decides nothing alone


class Succession:
    """Of the topics of one node (`layers.Succession`)."""

    def __init__(
        self, parameters: Parameters, trees: Trees, events: Replay, emit: Callable[[PeerEffect], None]
    ) -> None:
        self._parameters = parameters
        self._trees = trees
        self._events = events
        self._emit = emit
        self._has_others = False
        self._left_us: int | None = None  # since when there are no other nodes, if there were any
        trees.carry[Fetched] = self._fetched

    # --- A new root

    def become_root(self, topic: Topic) -> None:
        """See `layers.Succession`."""
        if topic.is_root:
            return
        topic.is_root, topic.is_joining, topic.parent, topic.path = True, False, None, ()
        topic.is_handing_over, topic.root_since_us = False, self._trees.now_us
        self._emit(m.Log("became_root", {"topic": f"{topic.key:032x}"}))
        self._trees.tell_paths(topic)
        topic.asked, topic.nearest = set(), set()
        self._ask_nearest(topic)
        topic.is_settling = (bool(topic.asked) or self.is_just_left) and not topic.has_positions
        if not topic.is_settling:
            self._trees.attached(topic)

    def _ask_nearest(self, topic: Topic) -> None:
        """Those that are nearest now and were not before may hold what another root took."""
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

    def woke(self) -> None:
        """This node did not run for so long that others may have taken it for failed, and been roots."""
        for topic in self._trees.topics.values():
            if topic.is_root:
                topic.nearest = set()
                self._ask_nearest(topic)

    def _fetched(self, topic: Topic, sender: Address, message: Fetched) -> None:
        topic.asked.discard(sender)
        if not topic.asked:
            self._settle(topic)

    def has_waited(self, topic: Topic) -> bool:
        """Whether a root had time to get what the one before it had."""
        waited_us = self._trees.now_us - topic.root_since_us
        return not topic.asked or waited_us >= self._parameters.retransmit_us

    def has_all_told(self, topic: Topic) -> bool:
        """See `layers.Succession`."""
        waited_us = self._trees.now_us - topic.root_since_us
        has_told = not topic.asked or waited_us >= LEFT_RETRANSMITS * self._parameters.retransmit_us
        return has_told and not self.may_be_divided(topic)

    def may_be_divided(self, topic: Topic) -> bool:
        """See `layers.Succession`."""
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
        """See `layers.Succession`."""
        now_us, retransmit_us = self._trees.now_us, self._parameters.retransmit_us
        if now_us - topic.sought_us > GAP_RETRANSMITS * retransmit_us:
            topic.seeking_since_us = now_us
        if self._is_gone(topic.root_since_us, topic.seeking_since_us):
            return True
        if now_us - topic.sought_us >= retransmit_us:
            topic.sought_us = now_us
            for address in sorted(topic.nearest | topic.children.keys()):
                self._events.ask_before(topic, address)
        return False

    def _is_gone(self, changed_us: int, missed_us: int, retransmits: int = GAP_RETRANSMITS) -> bool:
        """Whether what has been missed since then is with nobody: the ring has not changed for a while, or
        nobody keeps anything for so long.
        """
        patience_us, now_us = retransmits * self._parameters.retransmit_us, self._trees.now_us
        kept_us = self._parameters.buffer_us
        return now_us - changed_us >= min(patience_us, kept_us) or now_us - missed_us >= kept_us

    @property
    def is_just_left(self) -> bool:
        """Whether all others seem to have failed: it may well be this node that is cut off. Nobody else would
        have what it acknowledges, should it die before it hears of them again; and who begins with it misses
        what others have.
        """
        if self._left_us is None or self._parameters.is_best_effort:
            return False
        return self._trees.now_us - self._left_us < LEFT_RETRANSMITS * self._parameters.retransmit_us

    def _settle(self, topic: Topic) -> None:
        """Who joined meanwhile may begin, unless something is missing still."""
        if topic.is_settling and not topic.has_gap and not self.is_just_left:
            topic.is_settling = False
            self._trees.attached(topic)

    def look_after_root(self, topic: Topic, *, is_behind: bool) -> None:
        """Some time has passed: what is missing is asked for again, or given up. is_behind: whether a replica
        has more.
        """
        ahead = self._who_is_ahead(topic)
        missing = is_behind or bool(ahead)
        for stream, state in topic.streams.items():
            gap = state.gap
            if not state.early or gap.next != state.next:
                state.gap = Gap(state.next, self._trees.now_us, self._trees.now_us)
            elif not self._is_gone(
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
            those = (*(node.address for node in nearest), *topic.children, *ahead)
            self._events.fetch_from(topic, *dict.fromkeys(those))
        if self.has_waited(topic):
            self._settle(topic)

    def _who_is_ahead(self, topic: Topic) -> list[Address]:
        """Who said lately that it has more than this root, and still does."""
        since_us = self._trees.now_us - GAP_RETRANSMITS * self._parameters.retransmit_us
        topic.ahead = {
            address: (told_us, positions)
            for address, (told_us, positions) in topic.ahead.items()
            if told_us > since_us and topic.is_behind(positions)
        }
        return list(topic.ahead)

    # --- The one before

    def new_leafs(self, leaf_set: LeafSet) -> None:
        """The ring has changed: a root may be one no more, and what it misses may be with others now.

        Who kept a root's state tells the next one, too: the one before may be gone, and its replicas others.
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
                self._events.ask(topic, closest.address, is_last_told=True)  # it learns what is here
                self._trees.seek_parent(topic)
            elif topic.kept_for not in {None, closest.address}:
                topic.kept_for = closest.address
                self._events.ask(topic, closest.address, is_last_told=True)

    def look_after(self, topic: Topic) -> None:
        """See `layers.Succession`."""
        if topic.untold and not self.may_be_divided(topic):
            for address in sorted(topic.untold):
                self._trees.pastry.send(Fetched(topic.key), address)
            topic.untold.clear()
        if topic.is_handing_over and self._trees.now_us - topic.root_since_us > HAND_OVER_US:
            topic.is_handing_over = False
