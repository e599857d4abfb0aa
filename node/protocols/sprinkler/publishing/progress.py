"""A client's progress on one stream (paper 3.2, Fig. 3): cnt and next, and the events between them.

Everything from cnt + 1 to next - 1 was requested. It is either in `asked`, with the peer that was asked, or
has arrived early and waits in `early`.

Interpretation (checklist): cnt starts at 0 and next at 1, not -1 and 0, because the first event has number 1.
"""

from bisect import bisect_left
from collections import deque
from operator import attrgetter

from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.storage.batches import Batch, last_seq

FIRST_SEQ = attrgetter("first_seq")


class PendingRequest:
    """A pending REQUEST. `channel` is None while it must be sent to the proxy (again)."""

    __slots__ = ("asked_us", "channel", "last", "next")

    def __init__(self, next_seq: int, last: int, channel: SprinklerChannel | None, asked_us: int) -> None:
        self.next = next_seq
        self.last = last
        self.channel = channel
        self.asked_us = asked_us


class StreamProgress:
    """A client's progress on one stream. `cnt` and `next` are those of Fig. 3."""

    __slots__ = (
        "asked",
        "cnt",
        "discarded",
        "early",
        "early_bytes",
        "event_bytes",
        "heard",
        "next",
        "notifier",
        "stream",
        "window",
    )

    def __init__(self, stream: int, window: int) -> None:
        self.stream = stream
        self.cnt = 0
        self.next = 1
        self.asked: deque[PendingRequest] = deque()  # in the order of the stream
        self.early: list[Batch] = []  # likewise
        self.early_bytes = 0
        self.heard = 0  # the greatest counter in a NOTIFY
        self.notifier: SprinklerChannel | None = None  # its sender
        self.window = window  # events that may be requested beyond cnt
        self.event_bytes = -1  # for which the window was computed; none yet
        self.discarded = 0  # peers have discarded the events before this one

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
