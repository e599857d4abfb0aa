"""The receiving side of subscriptions: for each stream, from which proxy this one takes it (paper 3.1).

Carries out what `expects.choose` decides: at most one source for a stream, SUBSCRIBE with the proxy's *own*
counter ("how far it got"), UNSUBSCRIBE to the source left behind. A proxy that tells another path, or whose
channel breaks, makes the rule look again at once, without waiting for anybody's next advertisement: what was
in flight over a broken channel is lost with it, and comes again from the new source.

Between two epochs of a stream only those count that have more of the old one (`crossing`), as long as there
are any.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from node.protocols.sprinkler.chain.crossing import Crossing, with_rest
from node.protocols.sprinkler.messages import Counter
from node.protocols.sprinkler.parameters import Parameters
from node.protocols.sprinkler.region.expects import Expects, Offer, Path, Why, choose
from node.protocols.sprinkler.storage.batches import Batch
from node.protocols.sprinkler.storage.history import History

AN_ADVERTISEMENT_AGO = 0.9  # periods: they come on time, but for what the way adds


class Surroundings(Protocol):
    """What `Sources` needs of its proxy."""

    parameters: Parameters

    @property
    def others(self) -> int:
        """How many other regions there are."""

    def subscribe(self, proxy: str, stream: int, cnt: int) -> None:
        """Send SUBSCRIBE to this proxy: its events after `cnt`."""

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
    why: str  # a value of `expects.Why`, or silence (the channel fell silent) or lost (it broke)


class Source:
    """One stream's state. `returns`: it is our own, taken back from others: paths say nothing of it."""

    __slots__ = (
        "crossing",
        "left",
        "noted",
        "offers",
        "overdue",
        "resumed_us",
        "returns",
        "source",
        "told_us",
        "without_room",
    )

    def __init__(self, *, returns: bool) -> None:
        self.returns = returns
        self.source: str | None = None
        self.offers: dict[str, Offer] = {}  # of each connected proxy
        self.told_us: dict[str, int] = {}  # when each advertised last
        self.noted: dict[str, tuple[int, int]] = {}  # the counter to become `earlier`, and when it was told
        self.crossing: Crossing | None = None  # while the stream's next epoch waits
        self.overdue: set[str] = set()  # left for not keeping up, with the same path since
        self.left: str | None = None  # the last source, for the log
        self.resumed_us: int | None = None  # when a hole was last answered with a new SUBSCRIBE
        self.without_room: Batch | None = None  # for which there was none


class Sources:
    """The sources of all streams that the proxy takes from others. `region`: the proxy's own, as in paths."""

    def __init__(self, history: History, region: int, period_us: int, surroundings: Surroundings) -> None:
        self.paths_changed = True  # since `paths` was last asked
        self._history = history
        self._region = region
        self._period_us = period_us
        self._surroundings = surroundings
        self._sources: dict[int, Source] = {}

    def add(self, stream: int, *, returns: bool = False) -> None:
        """Take this stream from others from now on."""
        self._sources[stream] = Source(returns=returns)
        self.paths_changed = True

    def remove(self, stream: int) -> None:
        """Take this stream from nobody any more: its owner has taken it back."""
        source = self._sources.pop(stream, None)
        if source is not None and source.source is not None:
            self._surroundings.unsubscribe(source.source, stream)
        self.paths_changed = True

    def paths(self) -> dict[int, Path]:
        """By which path this region gets each stream from others; those that have none are left out."""
        self.paths_changed = False
        found = {}
        for stream, source in self._sources.items():
            offer = source.offers.get(source.source or "")
            if offer is not None and offer.path and self._region not in offer.path:
                found[stream] = (self._region, *offer.path)
        return found

    def advertised(self, proxy: str, counters: Iterable[Counter], now_us: int) -> None:
        """Take an ADVERTISEMENT of a connected proxy: transition rcvAdvertisement of Fig. 1.

        counters: of a stream several, where it advertises the ends of former epochs, too.
        """
        by_stream: dict[int, list[int]] = {}
        for counter in counters:
            by_stream.setdefault(counter.stream, []).append(counter.cnt)
        for stream, told in by_stream.items():
            source = self._sources.get(stream)
            if source is None:
                continue
            *ends, cnt = sorted(told)
            before = source.offers.get(proxy) or Offer(proxy, 0, 0)
            earlier = self._earlier(source, before, cnt, now_us)
            source.offers[proxy] = Offer(proxy, cnt, earlier, before.path, tuple(ends))
            source.told_us[proxy] = now_us
            self.choose(stream, source)
            if source.without_room is not None:
                self._go_on_with_room(stream, source, source.without_room)
            if source.crossing is not None:
                self._go_on_crossing(stream, source, source.crossing, now_us)

    def _earlier(self, source: Source, before: Offer, cnt: int, now_us: int) -> int:
        """What this proxy had an advertisement ago: the one at the connection's beginning may be younger."""
        noted, since_us = source.noted.get(before.proxy, (before.earlier, 0))
        if before.proxy in source.noted and now_us - since_us < AN_ADVERTISEMENT_AGO * self._period_us:
            return before.earlier
        source.noted[before.proxy] = cnt, now_us
        return noted

    def told_paths(self, proxy: str, paths: Mapping[int, Path]) -> None:
        """`proxy` tells all its paths anew."""
        for stream, source in self._sources.items():
            before = source.offers.get(proxy) or Offer(proxy, 0, 0)
            path = () if source.returns else paths.get(stream, ())
            if path == before.path and proxy in source.offers:
                continue
            source.offers[proxy] = Offer(proxy, before.cnt, before.earlier, path, before.ends)
            source.overdue.discard(proxy)
            self.paths_changed |= proxy == source.source
            self.choose(stream, source)

    def lost(self, proxy: str, why: str, now_us: int) -> None:
        """The channel to `proxy` broke."""
        for stream, source in self._sources.items():
            for known in (source.offers, source.told_us, source.noted):
                known.pop(proxy, None)
            source.overdue.discard(proxy)
            if source.source == proxy:
                source.crossing = None  # whoever brings the next epoch gives all others their time again
                self._reset(source)
                self.choose(stream, source, why)

    def choose(self, stream: int, source: Source, why: str = "") -> None:
        """Follow the rule. `why` is what made us look again, if the rule's own reason is not the one."""
        assert source.source is None or source.source in source.offers, "a source that is not connected"
        offers, expects = source.offers, Expects(source.source, self._reached(stream, source))
        rest = with_rest(offers, self._cnt(stream)) if source.crossing is not None else {}
        if rest:
            offers = rest
            if source.source not in rest:
                expects = Expects(None, self._cnt(stream))
        choice = choose(self._region, offers, expects, source.overdue)
        if choice is None:
            return
        after, reason = choice
        if reason is Why.ADVERTISEMENT and source.source is not None:
            source.overdue.add(source.source)
        self._switch(stream, source, after, why or reason.value)

    def resume(self, stream: int, now_us: int) -> bool:
        """Events are missing before what came: ask again from the own counter, at most once in a period."""
        source = self._sources[stream]
        if source.source is None or (source.crossing is not None and source.crossing.is_held):
            return False
        if source.resumed_us is not None and now_us - source.resumed_us < self._period_us:
            return False
        source.resumed_us = now_us
        self._surroundings.subscribe(source.source, stream, self._cnt(stream))
        return True

    def may_cross(self, stream: int, now_us: int) -> bool:
        """Whether the next epoch's beginning, which has come, is to be taken now.

        If not, what follows it will come again: after the rest of the old one, or when all have spoken.
        """
        source, cnt = self._sources[stream], self._cnt(stream)
        crossing = source.crossing = source.crossing or Crossing(cnt, now_us)
        is_late = crossing.waited_us(cnt, now_us) >= self._surroundings.parameters.restore_wait_us
        rest = with_rest(source.offers, cnt)
        if is_late or (not rest and self._all_have_spoken(source, crossing)):
            if crossing.is_held and source.source is not None:  # it sends nothing any more
                self._surroundings.subscribe(source.source, stream, cnt)
            source.crossing = None
            return True
        if rest:
            self.choose(stream, source)
        elif source.source is not None:
            crossing.is_held = True
            self._surroundings.unsubscribe(source.source, stream)
        return False

    def _all_have_spoken(self, source: Source, crossing: Crossing) -> bool:
        """Since the epoch's beginning first came, all other regions, as far as they can."""
        spoken = [proxy for proxy in source.offers if source.told_us.get(proxy, 0) > crossing.since_us]
        return len(spoken) >= max(self._surroundings.others, len(source.offers))

    def _go_on_crossing(self, stream: int, source: Source, crossing: Crossing, now_us: int) -> None:
        """Ask the source again when all have spoken, and once in a period."""
        is_time = crossing.is_held and self._all_have_spoken(source, crossing)
        if source.source is None or not (is_time or now_us - crossing.asked_us >= self._period_us):
            return
        crossing.is_held, crossing.asked_us = False, now_us
        self._surroundings.subscribe(source.source, stream, self._cnt(stream))

    def furthest(self, stream: int) -> int:
        """The largest counter that a connected proxy advertised, or 0."""
        return max((offer.cnt for offer in self._sources[stream].offers.values()), default=0)

    def stop(self, stream: int, batch: Batch) -> None:
        """Take no more of this stream for now: there is no room for this batch."""
        source = self._sources[stream]
        source.without_room = batch
        if source.source is not None:
            self._surroundings.unsubscribe(source.source, stream)

    def _go_on_with_room(self, stream: int, source: Source, batch: Batch) -> None:
        """Once there is, take the stream again."""
        if not self._history.has_room(batch):
            return
        source.without_room = None
        if source.source is not None:
            self._surroundings.subscribe(source.source, stream, self._cnt(stream))

    def _cnt(self, stream: int) -> int:
        return self._history.streams[stream].cnt

    def _reached(self, stream: int, source: Source) -> int:
        """How far the source is known to have got: as it advertised, or as it sent."""
        offer = source.offers.get(source.source or "")
        return self._cnt(stream) if offer is None else max(offer.cnt, self._cnt(stream))

    def _reset(self, source: Source) -> None:
        """expects back to none: what was in flight will not come."""
        source.left, source.source = source.source, None
        self.paths_changed = True

    def _switch(self, stream: int, source: Source, after: str, why: str) -> None:
        before = source.source
        assert after != before, "no change"
        assert after in source.offers, "a source that is not connected"
        assert self._region not in source.offers[after].path, "a circle"
        if before is not None:
            self._surroundings.unsubscribe(before, stream)
        self._surroundings.subscribe(after, stream, self._cnt(stream))
        source.source = after
        if source.crossing is not None:
            source.crossing.is_held = False
        source.overdue.discard(after)
        self.paths_changed = True
        switch = Switch(stream, before or source.left, after, self._cnt(stream), why)
        self._surroundings.source_switched(switch)
