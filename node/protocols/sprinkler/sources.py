"""The receiving side of subscriptions: for each stream, from which proxy this one takes it (paper 3.1).

Carries out what `expects.SubscriptionRule` decides: at most one source for a stream, SUBSCRIBE with the
proxy's *own* counter ("how far it got"), UNSUBSCRIBE to the source left behind. When the channel to a
source breaks, expects is reset to the own counter, since what was in flight is lost with the channel, and a
stream that another connected proxy is known to have more of is taken from that one at once, without waiting
for its next advertisement.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from node.protocols.sprinkler.expects import Expects, Heard, StreamRate, Verdict
from node.protocols.sprinkler.history import History
from node.protocols.sprinkler.messages import Counter


class Rule(Protocol):
    """What `Sources` needs of a rule; `expects.SubscriptionRule` is the one."""

    def judge(self, expects: Expects, heard: Heard, rate_per_s: float | None) -> Verdict:
        """What to do about an advertisement."""


class Surroundings(Protocol):
    """What `Sources` needs of its proxy."""

    def subscribe(self, proxy: str, stream: int, cnt: int) -> None:
        """Send SUBSCRIBE."""

    def unsubscribe(self, proxy: str, stream: int) -> None:
        """Send UNSUBSCRIBE."""

    def source_switched(self, switch: "Switch") -> None:
        """Note a change of source."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A change of source. `before` is the last one, also if lost meanwhile; `cnt` is the own counter."""

    stream: int
    before: str | None
    after: str
    cnt: int
    why: str  # advertisement, direct, silence (the channel fell silent) or lost (it broke)


class Source:
    """One stream's state."""

    __slots__ = ("advertised", "expects", "left", "owner", "rate", "resumed_us")

    def __init__(self, owner: str | None, rate: StreamRate) -> None:
        self.owner = owner  # the proxy that owns it; None while the owner itself takes it back
        self.expects = Expects(None, 0, 0)
        self.rate = rate
        self.advertised: dict[str, int] = {}  # by connected proxy, its latest counter
        self.left: str | None = None  # the last source, for the log
        self.resumed_us: int | None = None  # when a hole was last answered with a new SUBSCRIBE


class Sources:
    """The sources of all streams that the proxy takes from others."""

    def __init__(self, history: History, rule: Rule, period_us: int, surroundings: Surroundings) -> None:
        self._history = history
        self._rule = rule
        self._period_us = period_us
        self._surroundings = surroundings
        self._sources: dict[int, Source] = {}

    def add(self, stream: int, owner: str | None) -> None:
        """Take this stream from others from now on."""
        self._sources[stream] = Source(owner, StreamRate(self._period_us))

    def remove(self, stream: int) -> None:
        """Take it no more (its owner has taken it back)."""
        source = self._sources.pop(stream, None)
        if source is not None and source.expects.source is not None:
            self._surroundings.unsubscribe(source.expects.source, stream)

    def owned_by(self, stream: int, owner: str | None, now_us: int) -> None:
        """From now on this proxy is the owner's way to us: the tail of its region is another one."""
        source = self._sources.get(stream)
        if source is None or source.owner == owner:
            return
        source.owner = owner
        if owner is not None and owner in source.advertised:
            self.advertised(owner, [Counter(stream, source.advertised[owner])], now_us)

    def source_of(self, stream: int) -> str | None:
        """The current source of a stream."""
        return self._sources[stream].expects.source if stream in self._sources else None

    def advertised(self, proxy: str, counters: Iterable[Counter], now_us: int) -> None:
        """Transition rcvAdvertisement of Fig. 1."""
        for counter in counters:
            source = self._sources.get(counter.stream)
            if source is None:
                continue
            source.advertised[proxy] = counter.cnt
            source.rate.advertised(max(source.advertised.values()), now_us)
            heard = Heard(proxy, counter.cnt, now_us, owner=proxy == source.owner)
            verdict = self._rule.judge(source.expects, heard, source.rate.per_s)
            if verdict is Verdict.REFRESH:
                source.expects = Expects(proxy, counter.cnt, now_us)
            elif verdict is not Verdict.KEEP:
                self._switch(counter.stream, source, heard, verdict.value)

    def lost(self, proxy: str, why: str, now_us: int) -> None:
        """The channel to `proxy` broke."""
        for stream, source in self._sources.items():
            source.advertised.pop(proxy, None)
            if source.expects.source == proxy:
                self._reset(stream, source, now_us)
                self._take_from_furthest(stream, source, why, now_us)

    def resume(self, stream: int, now_us: int) -> bool:
        """Events are missing before what came: ask again from the own counter, at most once in a period."""
        source = self._sources[stream]
        if source.expects.source is None:
            return False
        if source.resumed_us is not None and now_us - source.resumed_us < self._period_us:
            return False
        source.resumed_us = now_us
        self._surroundings.subscribe(source.expects.source, stream, self._cnt(stream))
        return True

    def furthest(self, stream: int) -> int:
        """The largest counter that a connected proxy advertised, or 0."""
        return max(self._sources[stream].advertised.values(), default=0)

    def stop(self, stream: int) -> None:
        """Take no more of this stream for now: there is no room for it."""
        source = self._sources[stream]
        if source.expects.source is not None:
            self._surroundings.unsubscribe(source.expects.source, stream)

    def _cnt(self, stream: int) -> int:
        return self._history.streams[stream].cnt

    def _reset(self, stream: int, source: Source, now_us: int) -> None:
        """expects back to none, and to the own counter: what was in flight will not come."""
        source.left = source.expects.source
        source.expects = Expects(None, self._cnt(stream), now_us)

    def _take_from_furthest(self, stream: int, source: Source, why: str, now_us: int) -> None:
        furthest = max(source.advertised, key=lambda name: source.advertised[name], default=None)
        if furthest is not None and source.advertised[furthest] > self._cnt(stream):
            heard = Heard(furthest, source.advertised[furthest], now_us, owner=furthest == source.owner)
            self._switch(stream, source, heard, why)

    def _switch(self, stream: int, source: Source, heard: Heard, why: str) -> None:
        before = source.expects.source
        if before is not None:
            self._surroundings.unsubscribe(before, stream)
        self._surroundings.subscribe(heard.proxy, stream, self._cnt(stream))
        source.expects = Expects(heard.proxy, heard.cnt, heard.time_us)
        switch = Switch(stream, before or source.left, heard.proxy, self._cnt(stream), why)
        self._surroundings.source_switched(switch)
