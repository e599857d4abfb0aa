"""Requests for events, as clients send them (paper 3.2, Fig. 3): cnt and next of each stream, and pending
requests.

A NOTIFY of events that are not yet requested is answered by a REQUEST to the notifier (receiveNotify), and
next advances. Events directly after cnt are delivered (deliverEvent); requested events that arrive early
wait, within a limit. Missing events are requested from the proxy (requestFromProxy): when an answer ends with
gaps, when its peer is lost, or when nothing arrives from the peer for the request timeout. So are events that
the proxy advertised, if no NOTIFY of their stream arrives for the request timeout. If NOTIFYs of earlier
events arrive, the region is slow, and requests to the proxy from all of its clients would make it slower.

A client that is far behind requests a window at a time, the number of events that fit in the limit by their
size; events that peers have discarded are requested from the proxy directly. cnt and next themselves are in
`progress`.

Interpretation (checklist): any stream that the proxy holds is requested from it, not only those that it owns;
the times are those above.
"""

from bisect import insort
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from node.protocols.sprinkler.messages import Answered, Counter, Notify, Refusal, Request
from node.protocols.sprinkler.publishing.channel import Process, SprinklerChannel
from node.protocols.sprinkler.publishing.progress import FIRST_SEQ, PendingRequest, StreamProgress
from node.protocols.sprinkler.storage.batches import PLACEHOLDERS, Batch, cut_before, last_seq

ASSUMED_EVENT_BYTES = 16  # before an event has been measured


class RequestsContext(Process, Protocol):
    """Methods of the client that its requests use."""

    def proxy_channel(self) -> SprinklerChannel | None:
        """Return the channel to the tail of the region's proxy, if connected."""

    def deliver(self, batch: Batch, cnt: int) -> None:
        """Deliver the next events of their stream, up to `cnt`."""


class Requests:
    """The requests of one client, for all streams."""

    def __init__(
        self, node: RequestsContext, streams: Iterable[int], limit_bytes: int, timeout_us: int
    ) -> None:
        numbers = sorted(streams)
        self.duplicates = 0  # repeated events that were dropped
        self.timeouts = 0  # peers that sent nothing for the timeout
        self.paused = False  # nothing is requested: the application has not taken its events
        self._node = node
        self._share_bytes = limit_bytes // max(1, len(numbers))
        self._timeout_us = timeout_us
        window = max(1, self._share_bytes // ASSUMED_EVENT_BYTES)
        self.streams = {stream: StreamProgress(stream, window) for stream in numbers}
        self._came_us: dict[SprinklerChannel, int] = {}  # when events last arrived from each channel
        # by the proxy: when, and each counter with the latest one of a NOTIFY at that time
        self._advertised: tuple[int, list[tuple[Counter, int]]] | None = None

    # --- Transitions of Fig. 3

    def receive_notify(self, channel: SprinklerChannel, message: Notify) -> None:
        """Request events that are not yet requested (receiveNotify)."""
        streams, reached = self.streams, channel.reached
        for counter in message.counters:
            reached[counter.stream] = counter.cnt
            progress = streams.get(counter.stream)
            if progress is not None and counter.cnt >= progress.next:
                self._notified(channel, progress, counter.cnt)

    def receive_events(self, channel: SprinklerChannel, batch: Batch) -> None:
        """Deliver a batch that follows cnt (deliverEvent), and then early ones that follow it."""
        progress = self.streams.get(batch.stream)
        if progress is None:
            reason = f"did not ask for stream {batch.stream}"
            self._node.refuse(channel, Refusal.UNKNOWN_STREAM, reason, batch.stream)
            return
        self._came_us[channel] = self._node.now_us
        cnt = progress.cnt
        if batch.first_seq > cnt + 1:
            self._store_early(progress, batch)
            return
        last = last_seq(batch)
        if last <= cnt:
            self.duplicates += batch.count
            return
        self._deliver_event(progress, batch if batch.first_seq > cnt else cut_before(batch, cnt), last)
        if progress.early:
            self._deliver_early(progress)
        if progress.heard >= progress.next:
            self.request_more(progress)

    def request_from_proxy(self, progress: StreamProgress) -> None:
        """Request missing events from the proxy (requestFromProxy)."""
        proxy = self._node.proxy_channel()
        if proxy is None:
            return
        asked: deque[PendingRequest] = deque()
        for entry in progress.asked:
            if entry.channel is not None:
                asked.append(entry)
                continue
            for first, last in progress.holes(entry.next, entry.last):
                asked.append(PendingRequest(first, last, proxy, self._node.now_us))
                self._node.send(proxy, Request(progress.stream, first, last))
        progress.asked = asked

    # --- Other inputs

    def answered(self, channel: SprinklerChannel, message: Answered) -> None:
        """Handle the end of an answer: request its missing parts from the proxy."""
        progress = self.streams.get(message.stream)
        if progress is None:
            return
        for entry in progress.asked:
            if entry.channel is channel and entry.next == message.next:
                break
        else:
            return  # usually all of it is delivered; otherwise it was requested elsewhere meanwhile
        by_proxy = channel is self._node.proxy_channel()
        if by_proxy and message.cnt < entry.last:
            progress.forget_after(max(message.cnt, progress.cnt))
        holes = progress.holes(entry.next, entry.last)
        if not holes:
            return
        entry.channel = None
        if not by_proxy:
            progress.discarded = max(progress.discarded, holes[0][1] + 1)
            self.request_from_proxy(progress)
        elif message.last < entry.last:
            self.request_from_proxy(progress)  # its answers are limited; otherwise `sweep` tries again

    def lost(self, channel: SprinklerChannel) -> None:
        """Request from the proxy the events that a lost peer was asked for."""
        self._came_us.pop(channel, None)
        for progress in self.streams.values():
            if progress.notifier is channel:
                progress.notifier = None
            self._redirect_to_proxy(progress, channel)

    def proxy_opened(self) -> None:
        """Send the open requests to a (re)connected proxy."""
        self._advertised = None
        for progress in self.streams.values():
            self.request_from_proxy(progress)

    def advertised(self, counters: Sequence[Counter]) -> None:
        """Store the proxy's counters. A stream's acts as a NOTIFY only if no other arrives in the timeout."""
        if self._advertised is None:
            known = [
                (each, self.streams[each.stream].heard) for each in counters if each.stream in self.streams
            ]
            self._advertised = (self._node.now_us, known)

    def sweep(self) -> None:
        """Give up silent peers, and check for missed NOTIFYs; called periodically."""
        now_us = self._node.now_us
        for progress in self.streams.values():
            if not progress.asked:
                continue
            stalled = progress.asked[0].channel
            since_us = max(progress.asked[0].asked_us, self._came_us.get(stalled, 0) if stalled else 0)
            if stalled is None:
                self.request_from_proxy(progress)
            elif now_us - since_us >= self._timeout_us:
                self.timeouts += 1
                self._redirect_to_proxy(progress, stalled)
        proxy = self._node.proxy_channel()
        if self._advertised and proxy and now_us - self._advertised[0] >= self._timeout_us:
            known, self._advertised = self._advertised[1], None
            missed = [each for each, heard in known if self.streams[each.stream].heard == heard]
            self.receive_notify(proxy, Notify(tuple(missed)))

    def resume(self) -> None:
        """Request again, after a pause."""
        self.paused = False
        for progress in self.streams.values():
            if progress.heard >= progress.next:
                self.request_more(progress)

    def request_more(self, progress: StreamProgress) -> None:
        """Request events that the window did not allow before, when half of it is free."""
        room = progress.cnt + progress.window - (progress.next - 1)
        if 2 * room >= progress.window:
            self._request(progress.notifier, progress, progress.heard)

    # --- Parts of these

    def _notified(self, channel: SprinklerChannel, progress: StreamProgress, cnt: int) -> None:
        if cnt > progress.heard:
            progress.heard = cnt
            progress.notifier = channel
        self._request(channel, progress, cnt)

    def _request(self, channel: SprinklerChannel | None, progress: StreamProgress, cnt: int) -> None:
        """Send a REQUEST (sendRequest), for as many events as the window allows."""
        first = progress.next
        last = min(cnt, progress.cnt + progress.window)
        if last < first or self.paused:
            return
        if channel is None or first < progress.discarded:
            channel = self._node.proxy_channel()
        assert not progress.asked or progress.asked[-1].last < first, "requested twice"
        progress.asked.append(PendingRequest(first, last, channel, self._node.now_us))
        progress.next = last + 1
        if channel is not None:
            self._node.send(channel, Request(progress.stream, first, last))

    def _deliver_event(self, progress: StreamProgress, batch: Batch, cnt: int) -> None:
        assert batch.first_seq == progress.cnt + 1 <= cnt, "delivered twice, or with a gap"
        progress.cnt = cnt
        if progress.next <= cnt:
            progress.next = cnt + 1
        asked = progress.asked
        while asked and asked[0].last <= cnt:
            asked.popleft()
        if batch.event_bytes != progress.event_bytes:
            self._measure(progress, batch)
        self._node.deliver(batch, cnt)

    def check(self) -> None:
        """Assert the limit and the counter of early batches."""
        for progress in self.streams.values():
            assert progress.early_bytes <= self._share_bytes, "more early bytes than the limit"
            early_bytes = sum([len(batch.payload) for batch in progress.early])
            assert progress.early_bytes == early_bytes, "wrong count of early bytes"

    def _store_early(self, progress: StreamProgress, batch: Batch) -> None:
        """Store requested events that arrived early. Those beyond the limit are requested again later."""
        if batch.first_seq >= progress.next:
            return  # not requested
        if progress.early_bytes + len(batch.payload) > self._share_bytes:
            return
        if not progress.holes(batch.first_seq, last := last_seq(batch)):
            self.duplicates += batch.count
            return
        insort(progress.early, batch, key=FIRST_SEQ)
        progress.early_bytes += len(batch.payload)
        progress.next = max(progress.next, last + 1)

    def _deliver_early(self, progress: StreamProgress) -> None:
        taken = 0
        for batch in progress.early:
            if batch.first_seq > progress.cnt + 1:
                break
            taken += 1
            progress.early_bytes -= len(batch.payload)
            last = last_seq(batch)
            if last > progress.cnt:
                whole = batch.first_seq > progress.cnt
                self._deliver_event(progress, batch if whole else cut_before(batch, progress.cnt), last)
        del progress.early[:taken]
        assert progress.cnt < progress.next, "delivered without a request"
        assert bool(progress.early) >= bool(progress.early_bytes), "bytes without batches"

    def _redirect_to_proxy(self, progress: StreamProgress, channel: SprinklerChannel) -> None:
        """Request from the proxy the events that `channel` was asked for."""
        found = [entry for entry in progress.asked if entry.channel is channel]
        for entry in found:
            entry.channel = None
        if found:
            self.request_from_proxy(progress)

    def _measure(self, progress: StreamProgress, batch: Batch) -> None:
        """Adapt the window to a new size of events."""
        if batch.kind in PLACEHOLDERS:
            return
        progress.event_bytes = batch.event_bytes
        size = batch.event_bytes or len(batch.payload) // batch.count
        progress.window = max(1, self._share_bytes // max(1, size))
