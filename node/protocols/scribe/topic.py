"""A topic at one node: its place in the tree, and the events that the node holds of each stream.

Events are held in order and without gaps, so that whatever is handed on is in order: what comes before its
time waits (`early`), what comes twice is left out. They are kept for a while to be replayed. A publisher that
came back numbers in another epoch (`node.core.epochs`); each batch says which event it comes after.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise, takewhile

from node.core.peers.peer_pool import Address
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.scribe.messages import Create, Multicast, Position

CHECKED = 64  # of the newest batches, when someone asks whether all is as it must be
EARLY_MAX = 1_024  # batches of a stream that came before their time; further ones are fetched again
AHEAD_MAX = 64  # nodes that said that they have more


@dataclass(frozen=True, slots=True)
class Gap:
    """What a root misses of a stream. `next`: the first of it. `missed_us`: since when; `changed_us`: when it
    looked first after the ring had changed.
    """

    next: int = 0
    changed_us: int = 0
    missed_us: int = 0


@dataclass(slots=True)
class StreamState:
    """What a node holds of a stream. `next`: the first sequence number that it does not have.

    early: by the number for which they wait, which is beyond `next`.
    """

    next: int = 1
    kept: deque[tuple[int, Multicast]] = field(default_factory=deque)  # with the times at which they came
    early: dict[int, Multicast] = field(default_factory=dict)
    events: int = 0  # in `kept`
    told_us: int = 0  # when the last batch was sent to children
    gap: Gap = Gap()

    @property
    def first(self) -> int:
        """The first sequence number that is kept, or the next one."""
        return self.kept[0][1].after + 1 if self.kept else self.next

    def take(self, batch: Multicast, now_us: int) -> Iterator[Multicast]:
        """A batch came: the batches that are in order now."""
        if batch.after >= self.next:
            if len(self.early) < EARLY_MAX:
                self.early[batch.after + 1] = batch
            return
        if batch.first_seq >= self.next:
            yield from self._follow(batch, now_us)

    def put_before(self, batch: Multicast, now_us: int) -> None:
        """Keep a batch that ends where what is kept begins, as long as that; others are left out."""
        if batch.first_seq + batch.count == self.first:
            self.kept.appendleft((self.kept[0][0] if self.kept else now_us, batch))
            self.events += batch.count

    def _follow(self, batch: Multicast | None, now_us: int) -> Iterator[Multicast]:
        """Hold a batch that is in order, and those that waited for it."""
        while batch is not None:
            if batch.after < self.next - 1:  # where it was sent, less was known of the epoch before
                batch = replace(batch, after=self.next - 1)
            self.kept.append((now_us, batch))
            self.events += batch.count
            self.next = batch.first_seq + batch.count
            yield batch
            batch = self._due()

    def _due(self) -> Multicast | None:
        """Of what came early the batch that is next, those of this epoch first; what has come by another way
        since then is dropped.
        """
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
        """Keep nothing and wait for nothing: the batch, unless it or a later one came before.

        What is older is left out so that nothing goes round in a loop of parents.
        """
        if batch.first_seq >= self.next:
            self.next = batch.first_seq + batch.count
            yield batch

    def skip_to(self, seq: int, now_us: int) -> Iterator[Multicast]:
        """Give up everything before `seq`: the batches that are in order now."""
        if seq > self.next:
            self.next = seq
            self.kept.clear()
            self.events = 0
            self.early = {first: batch for first, batch in self.early.items() if first >= seq}
            yield from self._follow(self._due(), now_us)

    def check(self) -> None:
        """Assert that what is kept is in order, and no more waits than may."""
        assert len(self.early) <= EARLY_MAX, "more came early than is to be kept"
        assert all(first > self.next for first in self.early), "waits for what is there"
        newest = [batch for _, batch in islice(reversed(self.kept), CHECKED)][::-1]
        for batch, following in pairwise(newest):
            assert batch.first_seq + batch.count - 1 == following.after, "events kept with a gap"
        assert not newest or newest[-1].first_seq + newest[-1].count <= self.next, "kept beyond its end"
        assert self.events >= sum([batch.count for batch in newest]), "counted wrong"

    def since(self, seq: int) -> Sequence[Multicast]:
        """The batches from a sequence number on that are kept: mostly none, or a few of the newest."""
        newest = takewhile(lambda each: each[1].first_seq >= seq, reversed(self.kept))
        return [batch for _, batch in newest][::-1]

    def trim(self, before_us: int, events_max: int) -> None:
        """Drop what came before a time, and the oldest of more events than that."""
        while self.kept and (self.kept[0][0] < before_us or self.events > events_max):
            self.events -= self.kept.popleft()[1].count


@dataclass(slots=True)
class Child:
    """A child in the tree.

    waiting: what it asked for, while the node that adopted it has no parent itself. hops: of its join, to
    here; is_fixed: there is no other way for it (draft of 2001, 3.4.1). delay_us: to here, once measured.
    credentials: what it showed.
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
    """A topic at a node; `parent` is None at the root, and while one is sought."""

    key: int
    is_member: bool = False
    is_root: bool = False
    is_settling: bool = False  # a root that held nothing: it waits for what others have
    is_handing_over: bool = False  # a root that is none any more: it stays for a while, for what it has
    root_since_us: int = 0  # or not any more
    sought_us: int = -1 << 40  # when a root asked others for what it does not keep,
    seeking_since_us: int = 0  # and since when it does so, again and again
    nearest: set[Address] = field(default_factory=set)  # to a root, since it asked them last
    asked: set[Address] = field(default_factory=set)  # nodes that have not sent a new root all that they have
    untold: set[Address] = field(default_factory=set)  # new roots that are not told yet that this is all
    divided_us: int = -1 << 40  # when some who may have more were not heard of last
    ahead: dict[Address, tuple[int, Sequence[Position]]] = field(default_factory=dict)
    # who said, and when, that it has more than this node, which it took for the root
    is_joining: bool = False
    is_astray: bool = False  # the way that it joined by led to a loop: the next one is any other
    few_since_us: int | None = None  # since when it has so few children that the parent may take them
    grants: Create | None = None  # who may do what, as far as is known here
    credentials: int = 0  # what this node shows as a member
    has_positions: bool = False  # it was told from where on it gets events
    parent: NodeHandle | None = None
    heard_us: int = 0  # from the parent
    missed_us: int = -1  # when it was asked whether the parent lives
    refreshed_us: int = 0  # when the parent was told that this child lives
    fetched_us: int = -1 << 40
    path: tuple[int, ...] = ()
    children: dict[Address, Child] = field(default_factory=dict)
    streams: dict[int, StreamState] = field(default_factory=dict)
    replicas: dict[Address, dict[int, int]] = field(default_factory=dict)  # by stream what they have
    kept_for: Address | None = None  # the root that had its state kept here last
    publishers: dict[int, NodeHandle] = field(default_factory=dict)

    @property
    def parent_address(self) -> Address | None:
        """Where the parent listens."""
        return self.parent.address if self.parent is not None else None

    @property
    def is_attached(self) -> bool:
        """Whether it is in the tree: everything published from now on comes here."""
        return (self.is_root and not self.is_settling) or self.parent is not None

    @property
    def is_on_its_way(self) -> bool:
        """Whether it is in the tree, or will be."""
        return self.is_attached or self.is_root or self.is_joining

    def is_below(self, node: int, address: Address) -> bool:
        """Whether a node, by its id and address, is the parent, or further up."""
        return node in self.path or address == self.parent_address

    @property
    def is_needed(self) -> bool:
        """Whether the node has to be in the tree."""
        return self.is_member or bool(self.children) or self.is_handing_over

    def check(self, own: NodeHandle) -> None:
        """Assert what must hold of this topic at a node."""
        assert not (self.is_root and self.parent is not None), "a root with a parent"
        assert own.address not in self.children, "its own child"
        assert self.parent_address != own.address, "its own parent"
        assert own.id not in self.path, "below itself"
        for state in self.streams.values():
            state.check()

    @property
    def has_gap(self) -> bool:
        """Whether something came before its time."""
        return any(state.early for state in self.streams.values())

    def positions(self) -> tuple[Position, ...]:
        """How far this node has come, by stream."""
        return tuple(Position(stream, state.next) for stream, state in sorted(self.streams.items()))

    def state(self, stream: int) -> StreamState:
        """Of a stream; of one that is new, from its beginning on."""
        return self.streams.setdefault(stream, StreamState())

    def start_at(self, positions: Iterable[Position]) -> None:
        """Begin streams that are not known yet where somebody says."""
        for position in positions:
            self.streams.setdefault(position.stream, StreamState(position.next))

    def was_quiet(self, since_us: int) -> bool:
        """Whether children have not been sent events of some stream since then: they have to be told."""
        return not self.streams or any(state.told_us <= since_us for state in self.streams.values())

    def is_behind(self, positions: Iterable[Position]) -> bool:
        """Whether somebody has more than this node."""
        return any(position.next > self.next_of(position.stream) for position in positions)

    def lacks(self, batch: Multicast, sender: Address) -> bool:
        """Whether the root, of which this node is a replica, sends what is before all that is kept here."""
        state = self.streams.get(batch.stream)
        return self.kept_for == sender and state is not None and batch.first_seq < state.first

    def note_ahead(self, address: Address, now_us: int, positions: Sequence[Position]) -> None:
        """Somebody has more: should what it is asked for get lost, nobody else may have it."""
        self.ahead.pop(address, None)
        self.ahead[address] = now_us, positions
        if len(self.ahead) > AHEAD_MAX:
            del self.ahead[next(iter(self.ahead))]

    def next_of(self, stream: int) -> int:
        """The first sequence number of a stream that is missing here."""
        return self.streams[stream].next if stream in self.streams else 1


def by_stream(positions: Iterable[Position]) -> Mapping[int, int]:
    """Positions as a mapping."""
    return {position.stream: position.next for position in positions}
