"""A topic at one node: its place in the tree, and the stored events of each stream.

Events are stored in order and without gaps, so that they are forwarded in order: events out of order wait
(`early`), repetitions are dropped. Events are stored for some time for replay. A restarted publisher numbers
its events in another epoch (`node.core.epochs`); each batch names the event before it.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise, takewhile

from node.core.peers.peer_pool import Address
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.scribe.messages import Create, Multicast, Position

CHECKED = 64  # newest batches covered by `check`
EARLY_MAX = 1_024  # batches of a stream that arrived out of order; further ones are fetched again
AHEAD_MAX = 64  # nodes that reported that they have more


@dataclass(frozen=True, slots=True)
class StreamGap:
    """Missing events of a stream at a root.

    `next`: the first one. `missed_us`: time since which they are missing. `changed_us`: time of the first
    check after the ring changed.
    """

    next: int = 0
    changed_us: int = 0
    missed_us: int = 0


@dataclass(slots=True)
class StreamState:
    """The stored events of a stream at a node. `next`: the first missing sequence number.

    early: by the number that each batch waits for, which is beyond `next`.
    """

    next: int = 1
    kept: deque[tuple[int, Multicast]] = field(default_factory=deque)  # with the times of arrival
    early: dict[int, Multicast] = field(default_factory=dict)
    events: int = 0  # number of events in `kept`
    told_us: int = 0  # when the last batch was sent to children
    gap: StreamGap = StreamGap()

    @property
    def first(self) -> int:
        """The first stored sequence number, or the next one."""
        return self.kept[0][1].after + 1 if self.kept else self.next

    def take(self, batch: Multicast, now_us: int) -> Iterator[Multicast]:
        """Add a received batch; yield the batches that are in order now."""
        if batch.after >= self.next:
            if len(self.early) < EARLY_MAX:
                self.early[batch.after + 1] = batch
            return
        if batch.first_seq >= self.next:
            yield from self._follow(batch, now_us)

    def put_before(self, batch: Multicast, now_us: int) -> None:
        """Store a batch that ends directly before the stored ones; ignore others."""
        if batch.first_seq + batch.count == self.first:
            self.kept.appendleft((self.kept[0][0] if self.kept else now_us, batch))
            self.events += batch.count

    def _follow(self, batch: Multicast | None, now_us: int) -> Iterator[Multicast]:
        """Store a batch that is in order, and those that waited for it."""
        while batch is not None:
            if batch.after < self.next - 1:  # its sender knew less of the previous epoch
                batch = replace(batch, after=self.next - 1)
            self.kept.append((now_us, batch))
            self.events += batch.count
            self.next = batch.first_seq + batch.count
            yield batch
            batch = self._due()

    def _due(self) -> Multicast | None:
        """Return the next batch among those that arrived early, the current epoch first; drop repetitions."""
        if not self.early:
            return None
        due = [self.early.pop(first) for first in list(self.early) if first <= self.next]
        batch = min(
            (each for each in due if each.first_seq >= self.next),
            key=lambda each: each.first_seq,
            default=None,
        )
        for each in due:
            if batch is not None and each.first_seq > batch.first_seq:
                self.early[max(each.after + 1, batch.first_seq + batch.count)] = each
        return batch

    def pass_by(self, batch: Multicast) -> Iterator[Multicast]:
        """Yield the batch without storing it, unless it or a later one came before.

        Older batches are dropped so that none circulates in a loop of parents.
        """
        if batch.first_seq >= self.next:
            self.next = batch.first_seq + batch.count
            yield batch

    def skip_to(self, seq: int, now_us: int) -> Iterator[Multicast]:
        """Skip all events before `seq`; yield the batches that are in order now."""
        if seq > self.next:
            self.next = seq
            self.kept.clear()
            self.events = 0
            self.early = {first: batch for first, batch in self.early.items() if first >= seq}
            yield from self._follow(self._due(), now_us)

    def check(self) -> None:
        """Assert that stored batches are in order and that not too many wait."""
        assert len(self.early) <= EARLY_MAX, "too many early batches"
        assert all(first > self.next for first in self.early), "an early batch that is not early"
        newest = [batch for _, batch in islice(reversed(self.kept), CHECKED)][::-1]
        for batch, following in pairwise(newest):
            assert batch.first_seq + batch.count - 1 == following.after, "a gap in the stored events"
        assert not newest or newest[-1].first_seq + newest[-1].count <= self.next, (
            "events stored beyond the end of the stream"
        )
        assert self.events >= sum([batch.count for batch in newest]), "fewer events counted than stored"

    def since(self, seq: int) -> Sequence[Multicast]:
        """Return the stored batches from a sequence number on: mostly none, or a few of the newest."""
        newest = takewhile(lambda each: each[1].first_seq >= seq, reversed(self.kept))
        return [batch for _, batch in newest][::-1]

    def trim(self, before_us: int, events_max: int) -> None:
        """Drop batches that arrived before a time, and the oldest if there are too many events."""
        while self.kept and (self.kept[0][0] < before_us or self.events > events_max):
            self.events -= self.kept.popleft()[1].count


@dataclass(slots=True)
class TreeChild:
    """A child in the tree.

    waiting: positions that it requested, while this node has no parent itself. hops: hops of its join to this
    node. is_fixed: it knows no other way (draft of 2001, 3.4.1). delay_us: one-way delay to this node, once
    measured. credentials: those that it showed.
    """

    node: NodeHandle
    heard_us: int
    waiting: tuple[Position, ...] | None = None
    is_new: bool = False
    hops: int = 1
    is_fixed: bool = False
    delay_us: int | None = None
    credentials: int = 0


@dataclass(slots=True)
class Topic:
    """A topic at a node; `parent` is None at the root, and while a parent is sought."""

    key: int
    is_member: bool = False
    has_joined: bool = False  # as a member it has received all events since some time
    is_root: bool = False
    is_settling: bool = False  # a root without events: it waits for those of other nodes
    is_handing_over: bool = False  # a former root: it stays in the tree for some time, for its events
    root_since_us: int = 0  # time since which it is, or is no longer, the root
    sought_us: int = -1 << 40  # time of the last request by a root for events that it does not store
    seeking_since_us: int = 0  # begin of the current series of such requests
    nearest: set[Address] = field(default_factory=set)  # nodes nearest to a root at its last request
    # nodes that have not yet sent a new root all their events
    asked: set[Address] = field(default_factory=set)
    untold: set[Address] = field(default_factory=set)  # new roots to which FETCHED is still due
    divided_us: int = -1 << 40  # last time when nodes that may have more were unreachable
    ahead: dict[Address, tuple[int, Sequence[Position]]] = field(default_factory=dict)
    # by node: time and positions of its report that it has more than this node, which it considered the root
    is_joining: bool = False
    is_astray: bool = False  # its last way led to a loop: the next join takes any other
    few_since_us: int | None = None  # time since which it has few enough children to offer them to the parent
    grants: Create | None = None  # granted rights, as far as known here
    credentials: int = 0  # credentials of this node as a member
    has_positions: bool = False  # its first positions are known
    parent: NodeHandle | None = None
    heard_us: int = 0  # last message from the parent
    missed_us: int = -1  # last probe of the parent
    refreshed_us: int = 0  # last REFRESH to the parent
    fetched_us: int = -1 << 40
    path: tuple[int, ...] = ()
    children: dict[Address, TreeChild] = field(default_factory=dict)
    streams: dict[int, StreamState] = field(default_factory=dict)
    replicas: dict[Address, dict[int, int]] = field(default_factory=dict)  # progress by stream
    kept_for: Address | None = None  # the last root that replicated its state here
    publishers: dict[int, NodeHandle] = field(default_factory=dict)

    @property
    def parent_address(self) -> Address | None:
        """Listen address of the parent."""
        return self.parent.address if self.parent is not None else None

    @property
    def is_attached(self) -> bool:
        """Whether the node is in the tree: all events published from now on arrive here."""
        return (self.is_root and not self.is_settling) or self.parent is not None

    @property
    def is_on_its_way(self) -> bool:
        """Whether the node is in the tree or joining it."""
        return self.is_attached or self.is_root or self.is_joining

    def is_below(self, node: int, address: Address) -> bool:
        """Return whether the given node is the parent or above it."""
        return node in self.path or address == self.parent_address

    @property
    def is_needed(self) -> bool:
        """Whether the node must be in the tree."""
        return self.is_member or bool(self.children) or self.is_handing_over

    def check(self, own: NodeHandle) -> None:
        """Assert the invariants of this topic."""
        assert not (self.is_root and self.parent is not None), "a root with a parent"
        assert own.address not in self.children, "a node is its own child"
        assert self.parent_address != own.address, "a node is its own parent"
        assert own.id not in self.path, "a node is below itself"
        for state in self.streams.values():
            state.check()

    @property
    def has_gap(self) -> bool:
        """Whether some batch arrived out of order."""
        return any(state.early for state in self.streams.values())

    def positions(self) -> tuple[Position, ...]:
        """Return the progress of this node by stream."""
        return tuple(Position(stream, state.next) for stream, state in sorted(self.streams.items()))

    def state(self, stream: int) -> StreamState:
        """Return the state of a stream; a new one starts from its first event."""
        return self.streams.setdefault(stream, StreamState())

    def start_at(self, positions: Iterable[Position]) -> None:
        """Start unknown streams at the given positions."""
        for position in positions:
            self.streams.setdefault(position.stream, StreamState(position.next))

    def was_quiet(self, since_us: int) -> bool:
        """Return whether children got no events of some stream since then, so that a heartbeat is due."""
        return not self.streams or any(state.told_us <= since_us for state in self.streams.values())

    def is_behind(self, positions: Iterable[Position]) -> bool:
        """Return whether the positions are ahead of this node's."""
        return any(position.next > self.next_of(position.stream) for position in positions)

    def lacks(self, batch: Multicast, sender: Address) -> bool:
        """Return whether the batch, from this replica's root, precedes all stored events."""
        state = self.streams.get(batch.stream)
        return self.kept_for == sender and state is not None and batch.first_seq < state.first

    def note_ahead(self, address: Address, now_us: int, positions: Sequence[Position]) -> None:
        """Record that a node has more, possibly the only one, in case the request to it is lost."""
        self.ahead.pop(address, None)
        self.ahead[address] = now_us, positions
        if len(self.ahead) > AHEAD_MAX:
            del self.ahead[next(iter(self.ahead))]

    def next_of(self, stream: int) -> int:
        """Return the first missing sequence number of a stream."""
        return self.streams[stream].next if stream in self.streams else 1


def by_stream(positions: Iterable[Position]) -> Mapping[int, int]:
    """Return positions as a mapping from stream to first missing event."""
    return {position.stream: position.next for position in positions}
