"""The last leaf set of a node, in its storage: whom it asks when it comes back and its contact is gone.

Pastry, section 2 of both Scribe papers: "a recovering node contacts the nodes in its last known leaf set".
What is written is JOIN_LEAVES of its own, in a new segment each time; the one before is dropped.
That is done only now and then, and only if it changed: an older one will do as long as one of its nodes
lives.
"""

from collections.abc import Iterable, Iterator, Sequence

from node.core import machine as m
from node.protocols.pastry.messages import JoinLeaves
from node.protocols.reachability.nodes import NodeHandle


class LastLeafSet:
    """Of one node; written at most every `period_us`, never if that is 0."""

    def __init__(self, own: NodeHandle, period_us: int) -> None:
        self._own = own
        self._period_us = period_us
        self._segment = 0
        self._written: frozenset[NodeHandle] = frozenset()
        self._due_us = 0

    def restored(self, stored: Iterable[m.StoredSegment]) -> tuple[NodeHandle, ...]:
        """What an earlier process of this node has written last."""
        last: tuple[NodeHandle, ...] = ()
        for segment in stored:
            self._segment = segment.number
            for message in segment.messages:
                if isinstance(message, JoinLeaves):
                    last = message.nodes
        self._written = frozenset(last)
        return last

    def write(self, members: Sequence[NodeHandle], now_us: int) -> Iterator[m.Effect]:
        """What there is to do, if it is time and something has changed."""
        if not self._period_us or now_us < self._due_us or not members or self._written == set(members):
            return
        self._written, self._due_us = frozenset(members), now_us + self._period_us
        before, self._segment = self._segment, self._segment + 1
        yield m.Append(self._segment, (JoinLeaves(self._own.id, tuple(members)),))
        if before:
            yield m.Rewrite((before,), ())
