"""A replica's place in its region's chain (paper 3.3): what comes from the predecessor, what goes to the
successor, what the whole chain has, and the token.

The successor says FOLLOW with its own counters to its predecessor, in every configuration anew, and is
answered in kind; what came before the answer does not count, as it may belong to an earlier configuration.
A successor never has more than its predecessor: one that says so has another stream, and is refused with an
error in the log instead of being served. The predecessor serves it from Hist as it serves any subscriber,
each publication before its events. STORED goes back up the chain. Committed is what all replicas up to the
tail have; the tail has committed what it has. Whoever joins behind the tail is served alike; when the tail
has sent it everything it passes the token, and from then on commits only what the joiner has, too. When the
joiner has stored what came before the token it tells the configuration service, which makes it the tail. A
new configuration makes the token of an older one void.

Who knows that the region's stream is whole tells its successor, behind the last event that this takes. So a
successor knows it only when it has all of that, too, on its disk as well.

A replica that was removed keeps what was committed and drops the rest, since the chain may have gone on
without it; if the chain began anew meanwhile, from a member that lost its state, it drops everything.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from node.protocols.sprinkler.chain.configurations import Chain
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
from node.protocols.sprinkler.publishing.channel import Channel, Process
from node.protocols.sprinkler.publishing.publications import Publications
from node.protocols.sprinkler.region.subscribers import Subscribers
from node.protocols.sprinkler.storage.history import History

PUBLICATIONS_AT_ONCE = 256  # handed to the successor before its room is looked at again
PUBLICATION_BYTES = 512  # room for one of them, with the name of its publisher


class Surroundings(Process, Protocol):
    """What is needed of the replica."""

    history: History
    publications: Publications

    def service_channel(self) -> Channel | None:
        """The channel to the region's configuration service, if connected."""

    def stored(self, stream: int) -> int:
        """How much of a stream this replica has for good."""

    def committed(self, stream: int) -> None:
        """The whole chain has more of this stream."""

    def followed(self, channel: Channel) -> None:
        """The successor follows us from now on."""

    def whole_at(self) -> Mapping[int, int] | None:
        """How far the region's streams were when they were whole; None: they are not, as far as we know."""


class Replication:
    """A replica's links to predecessor and successor. `chain`: the region's present configuration."""

    def __init__(self, node: Surroundings, chain: Chain) -> None:
        self.chain = chain
        self.follows = False  # the predecessor has answered our FOLLOW
        self._node = node
        self._predecessor: Channel | None = None
        self.successor: Channel | None = None  # that has said FOLLOW in this configuration
        self._waiting: dict[str, tuple[Channel, Follow]] = {}  # FOLLOW of configurations not known here yet
        self._below: dict[int, int] = {}  # by stream, what the successors have
        self._told: dict[int, int] = {}  # by stream, what the predecessor was told
        self._token_held = False  # and all that came before it is stored
        self._awaited: dict[int, int] | None = (
            None  # by stream, what came before the token, until it is stored
        )
        self._token_passed = False
        self._has_told_whole = False  # the successor, that the region's stream is whole
        self._cursors = Subscribers(node.history, node.send, node.stored)
        self._changed: dict[int, None] = {}  # streams that need to be looked at

    # --- Configurations and connections

    def configured(self, chain: Chain) -> None:
        """Another configuration holds from now on: both links begin anew."""
        assert chain.number >= self.chain.number, "back to an earlier configuration"
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

    def opened(self, channel: Channel) -> None:
        """A connection is there; it may be the predecessor's, or the service's that waits for JOINED."""
        if channel.name == self.chain.predecessor(self._node.name):
            self._follow(channel)
        elif channel is self._node.service_channel() and self._token_held:
            self._node.send(channel, Joined(self.chain.number))

    def lost(self, channel: Channel) -> None:
        """A connection is gone, perhaps the predecessor's or the successor's."""
        if self._waiting.get(channel.name, (None,))[0] is channel:
            del self._waiting[channel.name]
        if channel is self._predecessor:
            self._predecessor, self.follows = None, False
        if channel is self.successor:
            self._leave_successor()

    def _follow(self, channel: Channel) -> None:
        if channel is self.successor or not self._is_meant(channel):
            return
        assert channel.name == self.chain.predecessor(self._node.name), "following who does not come before"
        self._predecessor, self.follows = channel, False
        self._told.clear()
        streams = self._node.history.streams
        counters = tuple([Counter(stream, state.cnt) for stream, state in streams.items()])
        self._node.send(channel, Follow(self.chain.number, counters))

    def _is_meant(self, channel: Channel) -> bool:
        return self.chain.has(channel.name, channel.incarnation)

    def _leave_successor(self) -> None:
        if self.successor is not None:
            self._cursors.forget(self.successor)
            self.successor = None
            self._has_told_whole = False

    # --- Messages along the chain

    def receive_follow(self, channel: Channel, message: Follow) -> None:
        """The predecessor's answer, or the successor's wish; one that is ahead of us waits."""
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

    def _is_ahead(self, channel: Channel, counters: Iterable[Counter]) -> bool:
        """Whether the follower has what it cannot have. It is told, and so is the log."""
        for counter in counters:
            state = self._node.history.streams.get(counter.stream)
            if state is not None and counter.cnt > state.cnt:
                fields = {"stream": counter.stream, "cnt": counter.cnt, "own": state.cnt}
                self._node.log("follower_ahead", "error", peer=channel.name, **fields)
                reason = f"FOLLOW says {counter.cnt} events; the predecessor has {state.cnt}"
                self._node.refuse(channel, Refusal.UNEXPECTED, reason, counter.stream)
                return True
        return False

    def _serve_from(self, channel: Channel, message: Follow) -> None:
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

    def comes_from_predecessor(self, channel: Channel) -> bool:
        """Whether what this channel sends along the chain counts."""
        return self.follows and channel is self._predecessor

    def receive_publication(self, channel: Channel, message: Publication) -> bool:
        """Note a publication that the predecessor passed on; returns whether it was new."""
        return self.comes_from_predecessor(channel) and self._node.publications.add(message)

    def receive_stored(self, channel: Channel, message: Stored) -> None:
        """The replicas behind us have these streams up to these counters."""
        if channel is self.successor:
            for counter in message.counters:
                if counter.stream not in self._node.history.streams:
                    continue
                self._below[counter.stream] = max(counter.cnt, self._below.get(counter.stream, 0))
                self._changed[counter.stream] = None

    def receive_token(self, channel: Channel, message: Token) -> None:
        """We have everything; `advance` tells the service, when it is stored."""
        if not self.comes_from_predecessor(channel) or message.configuration != self.chain.number:
            return
        self._awaited = {stream: state.cnt for stream, state in self._node.history.streams.items()}

    def _join(self) -> None:
        """Tell the service, if we hold the token and what the tail has committed is safe with us, too."""
        if self._awaited is None or any(self._node.stored(each) < cnt for each, cnt in self._awaited.items()):
            return
        self._token_held, self._awaited = True, None
        service = self._node.service_channel()
        if service is not None:
            self._node.send(service, Joined(self.chain.number))

    # --- What follows from it

    def grew(self, stream: int) -> None:
        """This replica has more of the stream."""
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
        if not self._has_told_whole:
            self._tell_whole(channel)
        joins = self.chain.joining is not None and self._may_pass_token()
        if joins and all_sent and self._cursors.is_level(channel):
            assert channel.name == self.chain.joining, "a token for who does not join"
            self._token_passed = True
            self._node.send(channel, Token(self.chain.number))
            self._node.log("token_passed", to=channel.name, configuration=self.chain.number)

    def _tell_whole(self, channel: Channel) -> None:
        whole_at = self._node.whole_at()
        if whole_at is None or not self._cursors.have_passed(channel, whole_at):
            return
        assert self.successor is channel, "whole for who does not follow"
        self._has_told_whole = True
        self._node.send(channel, Whole(self.chain.number))

    def advance(self) -> None:
        """After every input: commit what can be, tell the predecessor, serve the successor."""
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
        told = []
        for stream in changed:
            reach = node.stored(stream)
            if waits:
                reach = min(reach, self._below.get(stream, 0))
            state = node.history.streams[stream]
            assert reach <= state.cnt, "the chain has what this replica has not"
            if reach > state.committed:
                node.history.commit(stream, reach)
                node.committed(stream)
            if self.follows and reach > self._told.get(stream, 0):
                self._told[stream] = reach
                told.append(Counter(stream, reach))
        if told and self._predecessor is not None:
            self._node.send(self._predecessor, Stored(tuple(told)))

    @property
    def _waits_for_successor(self) -> bool:
        """Whether others have to have what we commit: members behind us, or who has our token."""
        name = self._node.name
        if name == self.chain.tail:
            return self._token_passed
        return name in self.chain.members

    def _may_pass_token(self) -> bool:
        return self.chain.tail == self._node.name and not self._token_passed
