"""The receiving side of subscriptions: for each stream, the proxy from which this one takes it (paper 3.1).

It executes the decisions of `expects.choose`: at most one source for a stream, SUBSCRIBE with the proxy's
*own* counter, UNSUBSCRIBE to the former source. When a proxy's path changes, or its channel breaks, the rule
is applied at once, without waiting for the next advertisement: events in flight on a broken channel are lost
with it, and come again from the new source.

Between two epochs of a stream, only proxies that have more of the old one are considered (`crossing`), as
long as there are any.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from node.protocols.sprinkler.chain.crossing import EpochTransition, with_rest
from node.protocols.sprinkler.messages import Counter
from node.protocols.sprinkler.parameters import SprinklerParameters
from node.protocols.sprinkler.region.expects import Expects, Offer, Path, SwitchReason, choose
from node.protocols.sprinkler.storage.batches import Batch
from node.protocols.sprinkler.storage.history import EventHistory

AN_ADVERTISEMENT_AGO = 0.9  # periods: advertisements are punctual except for variations of the delay


class SourcesContext(Protocol):
    """Methods and state of the proxy that `StreamSources` uses."""

    parameters: SprinklerParameters

    @property
    def others(self) -> int:
        """Number of other regions."""

    def subscribe(self, proxy: str, stream: int, cnt: int) -> None:
        """Send SUBSCRIBE to this proxy, for its events after `cnt`."""

    def unsubscribe(self, proxy: str, stream: int) -> None:
        """Send UNSUBSCRIBE to this proxy."""

    def source_switched(self, switch: "Switch") -> None:
        """Log a change of source."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A change of source. `before` is the last one, also if lost meanwhile; `cnt` is the own counter."""

    stream: int
    before: str | None
    after: str
    cnt: int
    why: str  # a value of `expects.SwitchReason`, or silence (the channel fell silent) or lost (it broke)


@dataclass(slots=True, eq=False)
class StreamSource:
    """One stream's state. `returns`: the own stream, recovered from others, for which paths do not apply."""

    returns: bool
    source: str | None = None
    offers: dict[str, Offer] = field(default_factory=dict)  # of each connected proxy
    told_us: dict[str, int] = field(default_factory=dict)  # when each advertised last
    # the counter to become `earlier`, and when it was received
    noted: dict[str, tuple[int, int]] = field(default_factory=dict)
    crossing: EpochTransition | None = None  # while the stream's next epoch waits
    overdue: set[str] = field(default_factory=set)  # left for not keeping up, with the same path since
    left: str | None = None  # the last source, for the log
    resumed_us: int | None = None  # when a gap was last answered with a new SUBSCRIBE
    settled: Expects | None = None  # the result of the rule's last application, if it changed nothing
    without_room: Batch | None = None  # the batch for which there was no room


class StreamSources:
    """The sources of all streams that the proxy takes from others. `region`: its own, as in paths."""

    def __init__(self, history: EventHistory, region: int, period_us: int, context: SourcesContext) -> None:
        self.paths_changed = True  # since the last call of `paths`
        self._history = history
        self._region = region
        self._period_us = period_us
        self._context = context
        self._sources: dict[int, StreamSource] = {}

    def add(self, stream: int, *, returns: bool = False) -> None:
        """Take this stream from others from now on."""
        self._sources[stream] = StreamSource(returns=returns)
        self.paths_changed = True

    def remove(self, stream: int) -> None:
        """Stop taking this stream: its owner has recovered it."""
        source = self._sources.pop(stream, None)
        if source is not None and source.source is not None:
            self._context.unsubscribe(source.source, stream)
        self.paths_changed = True

    def paths(self) -> dict[int, Path]:
        """Return the path by which this region gets each stream from others; streams without one are left
        out.
        """
        self.paths_changed = False
        found = {}
        for stream, source in self._sources.items():
            offer = source.offers.get(source.source or "")
            if offer is not None and offer.path and self._region not in offer.path:
                found[stream] = (self._region, *offer.path)
        return found

    def advertised(self, proxy: str, counters: Iterable[Counter], now_us: int) -> None:
        """Handle an ADVERTISEMENT of a connected proxy: transition rcvAdvertisement of Fig. 1.

        counters: several for a stream whose former epochs are advertised, too.
        """
        by_stream: dict[int, list[int]] = {}
        for counter in counters:
            by_stream.setdefault(counter.stream, []).append(counter.cnt)
        for stream, cnts in by_stream.items():
            source = self._sources.get(stream)
            if source is None:
                continue
            *ends, cnt = sorted(cnts)
            before = source.offers.get(proxy) or Offer(proxy, 0, 0)
            earlier = self._earlier(source, before, cnt, now_us)
            offer = source.offers[proxy] = Offer(proxy, cnt, earlier, before.path, tuple(ends))
            source.told_us[proxy] = now_us
            if source.crossing is not None or not self._is_settled(stream, source, before, offer):
                self.choose(stream, source)
            if source.without_room is not None:
                self._go_on_with_room(stream, source, source.without_room)
            if source.crossing is not None:
                self._go_on_crossing(stream, source, source.crossing, now_us)

    def _earlier(self, source: StreamSource, before: Offer, cnt: int, now_us: int) -> int:
        """Return this proxy's counter at least an advertisement ago; the one on connecting may be more
        recent.
        """
        noted, since_us = source.noted.get(before.proxy, (before.earlier, 0))
        if before.proxy in source.noted and now_us - since_us < AN_ADVERTISEMENT_AGO * self._period_us:
            return before.earlier
        source.noted[before.proxy] = cnt, now_us
        return noted

    def told_paths(self, proxy: str, paths: Mapping[int, Path]) -> None:
        """Store all paths of `proxy`."""
        for stream, source in self._sources.items():
            before = source.offers.get(proxy) or Offer(proxy, 0, 0)
            path = () if source.returns else paths.get(stream, ())
            if path == before.path and proxy in source.offers:
                continue
            offer = source.offers[proxy] = Offer(proxy, before.cnt, before.earlier, path, before.ends)
            source.overdue.discard(proxy)
            self.paths_changed |= proxy == source.source
            if proxy == source.source or not self._is_settled(stream, source, before, offer):
                self.choose(stream, source)

    def lost(self, proxy: str, why: str, now_us: int) -> None:
        """Handle a broken channel to `proxy`."""
        for stream, source in self._sources.items():
            for known in (source.offers, source.told_us, source.noted):
                known.pop(proxy, None)
            source.overdue.discard(proxy)
            if source.source == proxy:
                source.crossing = None  # the proxy with the next epoch gives all others their time again
                self._reset(source)
                self.choose(stream, source, why)

    def _is_settled(self, stream: int, source: StreamSource, before: Offer, offer: Offer) -> bool:
        """Return whether the rule changes nothing now that `offer` has replaced `before`.

        If it changed nothing before, the source's path is the same, and all counters have only grown, no
        other offer has become better, so the others need not be compared again.
        """
        settled = source.settled
        if settled is None:
            return False
        expects = Expects(source.source, self._reached(stream, source))
        if expects.source != settled.source or expects.seq < settled.seq:
            return False
        if offer.cnt < before.cnt or offer.earlier < before.earlier:
            return False
        if offer == before:
            return True
        offers = {offer.proxy: offer}
        if expects.source is not None:
            offers[expects.source] = source.offers[expects.source]
        if choose(self._region, offers, expects, source.overdue) is not None:
            return False
        source.settled = expects
        return True

    def choose(self, stream: int, source: StreamSource, why: str = "") -> None:
        """Apply the rule. `why`: the cause of this check, if it differs from the rule's own reason."""
        assert source.source is None or source.source in source.offers, "a source that is not connected"
        offers, expects = source.offers, Expects(source.source, self._reached(stream, source))
        rest = with_rest(offers, self._cnt(stream)) if source.crossing is not None else {}
        if rest:
            offers = rest
            if source.source not in rest:
                expects = Expects(None, self._cnt(stream))
        choice = choose(self._region, offers, expects, source.overdue)
        source.settled = expects if choice is None and source.crossing is None else None
        if choice is None:
            return
        after, reason = choice
        if reason is SwitchReason.ADVERTISEMENT and source.source is not None:
            source.overdue.add(source.source)
        self._switch(stream, source, after, why or reason.value)

    def resume(self, stream: int, now_us: int) -> bool:
        """Subscribe again from the own counter after a gap, at most once in a period."""
        source = self._sources[stream]
        if source.source is None or (source.crossing is not None and source.crossing.is_held):
            return False
        if source.resumed_us is not None and now_us - source.resumed_us < self._period_us:
            return False
        source.resumed_us = now_us
        self._context.subscribe(source.source, stream, self._cnt(stream))
        return True

    def may_cross(self, stream: int, now_us: int) -> bool:
        """Return whether the next epoch's beginning, which has arrived, may be taken now.

        If not, its events come again: after the rest of the old epoch, or when all regions have advertised.
        """
        source, cnt = self._sources[stream], self._cnt(stream)
        crossing = source.crossing = source.crossing or EpochTransition(cnt, now_us)
        is_late = crossing.waited_us(cnt, now_us) >= self._context.parameters.restore_wait_us
        rest = with_rest(source.offers, cnt)
        if is_late or (not rest and self._all_have_spoken(source, crossing)):
            if crossing.is_held and source.source is not None:  # it has stopped sending
                self._context.subscribe(source.source, stream, cnt)
            source.crossing = None
            return True
        if rest:
            self.choose(stream, source)
        elif source.source is not None:
            crossing.is_held = True
            self._context.unsubscribe(source.source, stream)
        return False

    def _all_have_spoken(self, source: StreamSource, crossing: EpochTransition) -> bool:
        """Return whether all reachable other regions have advertised since the epoch's beginning arrived."""
        spoken = [proxy for proxy in source.offers if source.told_us.get(proxy, 0) > crossing.since_us]
        return len(spoken) >= max(self._context.others, len(source.offers))

    def _go_on_crossing(
        self, stream: int, source: StreamSource, crossing: EpochTransition, now_us: int
    ) -> None:
        """Subscribe again when all regions have advertised, and once in a period."""
        is_time = crossing.is_held and self._all_have_spoken(source, crossing)
        if source.source is None or not (is_time or now_us - crossing.asked_us >= self._period_us):
            return
        crossing.is_held, crossing.asked_us = False, now_us
        self._context.subscribe(source.source, stream, self._cnt(stream))

    def furthest(self, stream: int) -> int:
        """Return the largest counter that a connected proxy advertised, or 0."""
        return max((offer.cnt for offer in self._sources[stream].offers.values()), default=0)

    def stop(self, stream: int, batch: Batch) -> None:
        """Stop taking this stream: there is no room for this batch."""
        source = self._sources[stream]
        source.without_room = batch
        if source.source is not None:
            self._context.unsubscribe(source.source, stream)

    def _go_on_with_room(self, stream: int, source: StreamSource, batch: Batch) -> None:
        """Take the stream again, once there is room."""
        if not self._history.has_room(batch):
            return
        source.without_room = None
        if source.source is not None:
            self._context.subscribe(source.source, stream, self._cnt(stream))

    def _cnt(self, stream: int) -> int:
        return self._history.streams[stream].cnt

    def _reached(self, stream: int, source: StreamSource) -> int:
        """Return the source's known counter: as advertised, or as received."""
        offer = source.offers.get(source.source or "")
        return self._cnt(stream) if offer is None else max(offer.cnt, self._cnt(stream))

    def _reset(self, source: StreamSource) -> None:
        """Reset expects to none: events in flight will not arrive."""
        source.left, source.source = source.source, None
        self.paths_changed = True

    def _switch(self, stream: int, source: StreamSource, after: str, why: str) -> None:
        before = source.source
        assert after != before, "a switch to the same source"
        assert after in source.offers, "a source that is not connected"
        assert self._region not in source.offers[after].path, "a path through the own region"
        if before is not None:
            self._context.unsubscribe(before, stream)
        self._context.subscribe(after, stream, self._cnt(stream))
        source.source = after
        if source.crossing is not None:
            source.crossing.is_held = False
        source.overdue.discard(after)
        self.paths_changed = True
        switch = Switch(stream, before or source.left, after, self._cnt(stream), why)
        self._context.source_switched(switch)
