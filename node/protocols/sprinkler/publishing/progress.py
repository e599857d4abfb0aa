"""A client's progress on one stream (paper 3.2, Fig. 3): cnt and next, and the events between them.

All events from cnt + 1 to next - 1 were requested. They are either in `asked`, with the peer that was asked,
or arrived early and wait in `early`.

Interpretation (checklist): cnt starts at 0 and next at 1, not -1 and 0, because the first event has number 1.
"""

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field
from operator import attrgetter

from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.storage.batches import Batch, last_seq

FIRST_SEQ = attrgetter("first_seq")


@dataclass(slots=True, eq=False)
class PendingRequest:
    """A pending REQUEST. `channel` is None while it must be sent to the proxy (again)."""

    next: int
    last: int
    channel: SprinklerChannel | None
    asked_us: int


@dataclass(slots=True, eq=False)
class StreamProgress:
    """A client's progress on one stream. `cnt` and `next` are those of Fig. 3."""

    stream: int
    window: int  # events that may be requested beyond cnt
    cnt: int = 0
    next: int = 1
    asked: deque[PendingRequest] = field(default_factory=deque)  # in the order of the stream
    early: list[Batch] = field(default_factory=list)  # likewise
    early_bytes: int = 0
    heard: int = 0  # the greatest counter in a NOTIFY
    notifier: SprinklerChannel | None = None  # its sender
    event_bytes: int = -1  # for which the window was computed; none yet
    discarded: int = 0  # peers have discarded the events before this one

    def holes(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the parts of first to last that are neither delivered nor waiting."""
        found = []
        at = max(first, self.cnt + 1)
        start = max(0, bisect_left(self.early, at, key=FIRST_SEQ) - 1)
        for batch in self.early[start:]:
            if batch.first_seq > last or at > last:
                break
            if batch.first_seq > at:
                found.append((at, batch.first_seq - 1))
            at = max(at, last_seq(batch) + 1)
        if at <= last:
            found.append((at, last))
        return found

    def forget_after(self, cnt: int) -> None:
        """Forget notified events after `cnt`, because they cannot be received."""
        self.heard = min(self.heard, cnt)
        self.next = min(self.next, cnt + 1)
        self.discarded = min(self.discarded, cnt + 1)
        self.asked = deque(asked for asked in self.asked if asked.next <= cnt)
        if self.asked:
            self.asked[-1].last = min(self.asked[-1].last, cnt)
        self.early = [batch for batch in self.early if batch.first_seq <= cnt]
        self.early_bytes = sum(len(batch.payload) for batch in self.early)
