"""A replica's links in its region's chain (paper 3.3): predecessor, successor, commit point and token.

In each configuration a successor sends FOLLOW with its counters to its predecessor, which answers in kind;
data received before the answer is ignored, because it may belong to an earlier configuration. A successor
never has more than its predecessor: if it reports more, its stream differs, and it is refused with an error
in the log. The predecessor serves it from Hist like any subscriber, each publication before its events.
STORED goes back up the chain. Events that all replicas up to the tail have are committed; the tail commits
what it has. A joiner follows the tail in the same way; when the tail has sent it everything, it passes the
token, and from then on commits only what the joiner has, too. When the joiner has stored everything before
the token, it notifies the configuration service, which makes it the tail. A new configuration voids the token
of an older one.

A replica that knows that the region's stream is complete notifies its successor, after the last event that
the successor needs. So a successor knows it only when it has these events, too, also on disk.

A removed replica keeps committed events and drops the rest, because the chain may have continued without it;
if the chain has been re-formed from a member that lost its state, it drops everything.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from node.protocols.sprinkler.chain.configurations import ReplicaChain
from node.protocols.sprinkler.messages import (
    Counter,
    Follow,
    Joined,
    Publication,
    Refusal,
    Stored,
    Token,
    Whole,
)
from node.protocols.sprinkler.publishing.channel import Process, SprinklerChannel
from node.protocols.sprinkler.publishing.publications import Publications
from node.protocols.sprinkler.region.subscribers import Subscribers
from node.protocols.sprinkler.storage.history import EventHistory

PUBLICATIONS_AT_ONCE = 256  # sent to the successor before its room is checked again
PUBLICATION_BYTES = 512  # room for one of them, with the name of its publisher


class ReplicationContext(Process, Protocol):
    """Methods and state of the replica that its chain links use."""

    history: EventHistory
    publications: Publications

    def service_channel(self) -> SprinklerChannel | None:
        """Return the channel to the region's configuration service, if connected."""

    def stored(self, stream: int) -> int:
        """Return the last durable event of a stream in this replica."""

    def committed(self, stream: int) -> None:
        """Handle that the whole chain has more of this stream."""

    def followed(self, channel: SprinklerChannel) -> None:
        """Handle that the successor follows this replica from now on."""

    def whole_at(self) -> Mapping[int, int] | None:
        """Return the counters of the region's streams when they became complete; None: not known to be
        complete.
        """


class Replication:
    """A replica's links to predecessor and successor. `chain`: the region's present configuration."""

    def __init__(self, node: ReplicationContext, chain: ReplicaChain) -> None:
        self.chain = chain
        self.follows = False  # the predecessor has answered FOLLOW
        self._node = node
        self._predecessor: SprinklerChannel | None = None
        self.successor: SprinklerChannel | None = None  # it has sent FOLLOW in this configuration
        # FOLLOW of configurations not yet known here
        self._waiting: dict[str, tuple[SprinklerChannel, Follow]] = {}
        self._below: dict[int, int] = {}  # by stream, the counters of the successors
        self._reported: dict[int, int] = {}  # by stream, the last counter sent to the predecessor
        self._token_held = False  # and everything before it is stored
        # by stream, the counters at the token, until they are stored
        self._awaited: dict[int, int] | None = None
        self._token_passed = False
        self._whole_sent = False  # the successor was notified that the region's stream is complete
        self._cursors = Subscribers(node.history, node.send, node.stored)
        self._changed: dict[int, None] = {}  # streams that `advance` must check

    # --- Configurations and connections

    def configured(self, chain: ReplicaChain) -> None:
        """Apply another configuration: both links begin again."""
        assert chain.number >= self.chain.number, "return to an earlier configuration"
        self.chain = chain
        self._leave_successor()
        self._predecessor, self.follows = None, False
        self._token_held = self._token_passed = False
        self._awaited = None
        self._cursors.history = self._node.history
        self._below.clear()
        self._changed.update(dict.fromkeys(self._node.history.streams))
        predecessor = self._node.channels.get(chain.predecessor(self._node.name) or "")
        if predecessor is not None:
            self._follow(predecessor)
        for channel, follow in list(self._waiting.values()):
            self.receive_follow(channel, follow)

    def opened(self, channel: SprinklerChannel) -> None:
        """Handle an open connection; it may be the predecessor's, or the service's that waits for JOINED."""
        if channel.name == self.chain.predecessor(self._node.name):
            self._follow(channel)
        elif channel is self._node.service_channel() and self._token_held:
            self._node.send(channel, Joined(self.chain.number))

    def lost(self, channel: SprinklerChannel) -> None:
        """Handle the loss of a connection, perhaps the predecessor's or the successor's."""
        if self._waiting.get(channel.name, (None,))[0] is channel:
            del self._waiting[channel.name]
        if channel is self._predecessor:
            self._predecessor, self.follows = None, False
        if channel is self.successor:
            self._leave_successor()

    def _follow(self, channel: SprinklerChannel) -> None:
        if channel is self.successor or not self._is_meant(channel):
            return
        assert channel.name == self.chain.predecessor(self._node.name), (
            "following a replica that is not the predecessor"
        )
        self._predecessor, self.follows = channel, False
        self._reported.clear()
        streams = self._node.history.streams
        counters = tuple([Counter(stream, state.cnt) for stream, state in streams.items()])
        self._node.send(channel, Follow(self.chain.number, counters))

    def _is_meant(self, channel: SprinklerChannel) -> bool:
        return self.chain.has(channel.name, channel.incarnation)

    def _leave_successor(self) -> None:
        if self.successor is not None:
            self._cursors.forget(self.successor)
            self.successor = None
            self._whole_sent = False

    # --- Messages along the chain

    def receive_follow(self, channel: SprinklerChannel, message: Follow) -> None:
        """Handle the predecessor's answer or the successor's FOLLOW; one of a later configuration waits."""
        if message.configuration > self.chain.number:
            self._waiting[channel.name] = (channel, message)
            return
        self._waiting.pop(channel.name, None)
        if message.configuration < self.chain.number or not self._is_meant(channel):
            return  # it will learn of the present one
        if channel is self._predecessor:
            self.follows = True
            self._changed.update(dict.fromkeys(self._node.history.streams))
        elif channel.name == self.chain.successor(self._node.name):
            self._serve_from(channel, message)

    def _is_ahead(self, channel: SprinklerChannel, counters: Iterable[Counter]) -> bool:
        """Return whether the follower reports events that the predecessor lacks; if so, refuse it and log an
        error.
        """
        for counter in counters:
            state = self._node.history.streams.get(counter.stream)
            if state is not None and counter.cnt > state.cnt:
                fields = {"stream": counter.stream, "cnt": counter.cnt, "own": state.cnt}
                self._node.log("follower_ahead", "error", peer=channel.name, **fields)
                reason = f"FOLLOW reports {counter.cnt} events; the predecessor has {state.cnt}"
                self._node.refuse(channel, Refusal.UNEXPECTED, reason, counter.stream)
                return True
        return False

    def _serve_from(self, channel: SprinklerChannel, message: Follow) -> None:
        self._leave_successor()
        if self._is_ahead(channel, message.counters):
            return
        self.successor = channel
        self._below.clear()
        self._node.publications.rewind()
        streams = self._node.history.streams
        own = tuple([Counter(stream, state.cnt) for stream, state in streams.items()])
        self._node.send(channel, Follow(self.chain.number, own))
        for counter in message.counters:
            if counter.stream in streams:
                self._cursors.follow(channel, counter.stream, counter.cnt)
        self._node.followed(channel)
        self.serve()

    def comes_from_predecessor(self, channel: SprinklerChannel) -> bool:
        """Return whether data from this channel is valid: it comes from the predecessor in the present
        configuration.
        """
        return self.follows and channel is self._predecessor

    def receive_publication(self, channel: SprinklerChannel, message: Publication) -> bool:
        """Store a publication that the predecessor forwarded; return whether it was new."""
        return self.comes_from_predecessor(channel) and self._node.publications.add(message)

    def receive_stored(self, channel: SprinklerChannel, message: Stored) -> None:
        """Note that the following replicas have these streams up to these counters."""
        if channel is self.successor:
            for counter in message.counters:
                if counter.stream not in self._node.history.streams:
                    continue
                self._below[counter.stream] = max(counter.cnt, self._below.get(counter.stream, 0))
                self._changed[counter.stream] = None

    def receive_token(self, channel: SprinklerChannel, message: Token) -> None:
        """Note the token; `advance` notifies the service when everything before it is stored."""
        if not self.comes_from_predecessor(channel) or message.configuration != self.chain.number:
            return
        self._awaited = {stream: state.cnt for stream, state in self._node.history.streams.items()}

    def _join(self) -> None:
        """Notify the service if this replica holds the token and has stored what the tail has committed."""
        if self._awaited is None or any(self._node.stored(each) < cnt for each, cnt in self._awaited.items()):
            return
        self._token_held, self._awaited = True, None
        service = self._node.service_channel()
        if service is not None:
            self._node.send(service, Joined(self.chain.number))

    # --- Results

    def grew(self, stream: int) -> None:
        """Note that this replica has more of the stream."""
        self._changed[stream] = None
        self._cursors.grew(stream)

    def serve(self) -> None:
        """Send the successor what it lacks, publications first, as far as its channel has room."""
        channel, publications = self.successor, self._node.publications
        if channel is None:
            return
        while not (all_sent := publications.all_sent) and channel.open_for_bulk:
            fitting = 1 + channel.room_bytes // PUBLICATION_BYTES
            self._node.send(channel, *publications.take_unsent(min(fitting, PUBLICATIONS_AT_ONCE)))
        if all_sent:
            self._cursors.serve(channel)
        if not self._whole_sent:
            self._send_whole(channel)
        joins = self.chain.joining is not None and self._may_pass_token()
        if joins and all_sent and self._cursors.is_level(channel):
            assert channel.name == self.chain.joining, "a token for a replica that does not join"
            self._token_passed = True
            self._node.send(channel, Token(self.chain.number))
            self._node.log("token_passed", to=channel.name, configuration=self.chain.number)

    def _send_whole(self, channel: SprinklerChannel) -> None:
        whole_at = self._node.whole_at()
        if whole_at is None or not self._cursors.have_passed(channel, whole_at):
            return
        assert self.successor is channel, "WHOLE for a replica that does not follow"
        self._whole_sent = True
        self._node.send(channel, Whole(self.chain.number))

    def advance(self) -> None:
        """Commit, notify the predecessor and serve the successor; called after every input."""
        if self._awaited is not None:
            self._join()
        if self.successor is not None:
            self.serve()
        if not self._changed:
            return
        changed, self._changed = self._changed, {}
        node = self._node
        if node.name not in self.chain.everyone:
            return
        waits = self._waits_for_successor
        counters = []
        for stream in changed:
            reach = node.stored(stream)
            if waits:
                reach = min(reach, self._below.get(stream, 0))
            state = node.history.streams[stream]
            assert reach <= state.cnt, "the chain has more than this replica"
            if reach > state.committed:
                node.history.commit(stream, reach)
                node.committed(stream)
            if self.follows and reach > self._reported.get(stream, 0):
                self._reported[stream] = reach
                counters.append(Counter(stream, reach))
        if counters and self._predecessor is not None:
            self._node.send(self._predecessor, Stored(tuple(counters)))

    @property
    def _waits_for_successor(self) -> bool:
        """Whether commits wait for other replicas: later members, or the receiver of this replica's token."""
        name = self._node.name
        if name == self.chain.tail:
            return self._token_passed
        return name in self.chain.members

    def _may_pass_token(self) -> bool:
        return self.chain.tail == self._node.name and not self._token_passed
