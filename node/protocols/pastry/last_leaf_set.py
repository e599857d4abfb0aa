"""The last leaf set of a node on its disk, for a restart at which its contact is gone.

Pastry, section 2 of both Scribe papers: "a recovering node contacts the nodes in its last known leaf set".
The record is the node's own JOIN_LEAVES, in a new segment each time; the previous one is dropped. It is
written only occasionally and only if changed: an older one is sufficient while one of its nodes is alive.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from node.core import machine as m
from node.protocols.pastry.messages import JoinLeaves
from node.protocols.reachability.nodes import NodeHandle


@dataclass(slots=True, eq=False)
class LastLeafSet:
    """The stored leaf set of one node; written at most every `period_us`, never if that is 0."""

    own: NodeHandle
    period_us: int
    _segment: int = 0
    _written: frozenset[NodeHandle] = field(default_factory=frozenset)
    _due_us: int = 0

    def restored(self, stored: Iterable[m.StoredSegment]) -> tuple[NodeHandle, ...]:
        """Return the leaf set that an earlier process of this node wrote last."""
        last: tuple[NodeHandle, ...] = ()
        for segment in stored:
            self._segment = segment.number
            for message in segment.messages:
                if isinstance(message, JoinLeaves):
                    last = message.nodes
        self._written = frozenset(last)
        return last

    def write(self, members: Sequence[NodeHandle], now_us: int) -> Iterator[m.Effect]:
        """Yield the effects that write the leaf set, if the period has passed and the set has changed."""
        if not self.period_us or now_us < self._due_us or not members or self._written == set(members):
            return
        self._written, self._due_us = frozenset(members), now_us + self.period_us
        before, self._segment = self._segment, self._segment + 1
        yield m.Append(self._segment, (JoinLeaves(self.own.id, tuple(members)),))
        if before:
            yield m.Rewrite((before,), ())
