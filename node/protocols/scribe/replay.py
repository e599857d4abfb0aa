"""Events of a node's topics: reception, forwarding, storage, replay, and requests for missing ones.

A repair of the tree loses no events: a join contains the sender's progress, and the new parent sends all that
follows (draft of 2001, 3.5; 2002, III.D: "JOIN carries the last n, replay > n"). A parent that does not store
such old events requests them from its own parent, up to the root. A node that learns that a parent, child or
replica has more than itself requests the rest: so two trees of a partitioned network merge without loss.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.scribe.layers import TreeListener
from node.protocols.scribe.messages import Fetch, FetchBefore, Fetched, Gone, Multicast, Position
from node.protocols.scribe.parameters import ScribeParameters
from node.protocols.scribe.topic import Topic, by_stream
from node.protocols.scribe.tree import TopicTrees


class Replay:
    """Events of all topics of a node (`layers.EventTransfer`)."""

    def __init__(
        self,
        parameters: ScribeParameters,
        trees: TopicTrees,
        emit: Callable[[PeerEffect], None],
        listener: TreeListener,
    ) -> None:
        self._parameters = parameters
        self._trees = trees
        self._emit = emit
        self._listener = listener
        trees.carry |= {Fetch: self._fetch, FetchBefore: self._fetch_before, Gone: self._gone}
        trees.unknown[Fetch] = Fetched

    def take(self, topic: Topic, batch: Multicast) -> bool:
        """See `layers.EventTransfer`."""
        state = topic.state(batch.stream)
        if self._parameters.is_best_effort:
            self._pass_on(topic, state.pass_by(batch))
            return False
        if (topic.is_root or topic.kept_for is not None) and batch.first_seq < state.first:
            state.put_before(batch, self._trees.now_us)
        self._pass_on(topic, state.take(batch, self._trees.now_us))
        return batch.after >= state.next

    def _pass_on(self, topic: Topic, batches: Iterable[Multicast]) -> None:
        for batch in batches:
            topic.state(batch.stream).told_us = self._trees.now_us
            onward = self._onward(batch)
            for child in topic.children.values():
                if child.waiting is None:
                    self._trees.pastry.send(onward, child.node.address)
            self._listener.on_event(topic, batch)

    def _onward(self, batch: Multicast) -> Multicast:
        content = self._trees.handlers.forward_handler(batch.payload)
        return batch if content is batch.payload else replace(batch, payload=content)

    def fetch_from(self, topic: Topic, *addresses: Address) -> None:
        """See `layers.EventTransfer`."""
        if self._trees.now_us - topic.fetched_us >= self._parameters.retransmit_us // 2:
            for address in addresses:
                # what arrives may be the answer to the last request
                if not self._trees.pastry.reach.is_receiving(address):
                    self.ask(topic, address)

    def ask(self, topic: Topic, address: Address, *, is_last_told: bool = False) -> None:
        """See `layers.EventTransfer`."""
        if self._parameters.is_best_effort:
            return
        topic.fetched_us = self._trees.now_us
        own = self._trees.pastry.own
        fetch = Fetch(topic.key, own.id, own.address, int(is_last_told), topic.positions())
        self._trees.pastry.send(fetch, address)

    def ask_before(self, topic: Topic, address: Address) -> None:
        """See `layers.EventTransfer`: a node that joined late did not need those events before."""
        if firsts := tuple(Position(stream, state.first) for stream, state in topic.streams.items()):
            self._trees.pastry.send(FetchBefore(topic.key, firsts), address)

    def _fetch_before(self, topic: Topic, sender: Address, message: FetchBefore) -> None:
        for stream, before in by_stream(message.positions).items():
            state = topic.streams.get(stream)
            for batch in reversed(state.since(1)) if state is not None else ():
                if batch.first_seq < before:
                    self._trees.pastry.send(self._onward(batch), sender)

    def _fetch(self, topic: Topic, sender: Address, message: Fetch) -> None:
        asking = NodeHandle(message.id, message.address)
        if sender != asking.address:
            self._trees.pastry.miss(asking)  # the node may not be reachable directly from here
        missing = self.replay(topic, asking, message.positions)
        if missing and sender == asking.address == topic.parent_address:
            further = Fetch(topic.key, asking.id, asking.address, 0, missing)
            for child in topic.children:
                self._trees.pastry.send(further, child)  # a child may have been a root when this node was not
        if message.is_last_told:
            if topic.kept_for is not None and self._trees.succession.may_be_divided(topic):
                topic.untold.add(asking.address)
            else:
                self._trees.pastry.send(Fetched(topic.key), asking.address)
            if topic.is_behind(message.positions):
                topic.note_ahead(asking.address, self._trees.now_us, message.positions)
                self.ask(topic, asking.address)
            if topic.is_root:
                self.ask_before(topic, asking.address)

    def replay(self, topic: Topic, to: NodeHandle, positions: Iterable[Position]) -> tuple[Position, ...]:
        """See `layers.EventTransfer`."""
        asked = by_stream(positions)
        missing = []
        for stream, state in topic.streams.items():
            wanted = asked.get(stream, 1)
            if wanted < state.first:
                missing.append(Position(stream, wanted))
            for batch in state.since(wanted):
                self._trees.pastry.send(self._onward(batch), to.address)
        if missing and topic.parent is not None and topic.parent != to:
            self._trees.pastry.send(
                Fetch(topic.key, to.id, to.address, 0, tuple(missing)), topic.parent.address
            )
        elif topic.is_root and missing and self._trees.succession.has_sought(topic):
            for position in missing:
                first = topic.streams[position.stream].first
                self._trees.pastry.send(Gone(topic.key, position.stream, first), to.address)
        return tuple(missing)

    def _gone(self, topic: Topic, sender: Address, message: Gone) -> None:
        if topic.is_needed or topic.kept_for == sender:
            self.give_up(topic, message.stream, message.next)

    def give_up(self, topic: Topic, stream: int, following: int) -> None:
        """Skip the events of a stream before `following`, since no node has them."""
        state = topic.state(stream)
        if following > state.next:
            fields = {"stream": stream, "from": state.next, "to": following - 1}
            self._emit(m.Log("events_gone", fields, "warning"))
            self._pass_on(topic, state.skip_to(following, self._trees.now_us))
