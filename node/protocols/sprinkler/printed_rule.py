"""The subscription rule as figure 1 of the paper prints it (`subscription_rule: paper`), for comparison.

An advertiser p' is taken if cnt > expects.seq + C / (T - expects.time); whenever the test succeeds, also for
the source itself, expects becomes (p', cnt, T). There are no paths. The paper does not say what happens when
the channel to a source breaks; here the proxy that is furthest ahead is taken. docs/subscription-rule.md
compares the rules.
"""

from collections.abc import Iterable, Mapping

from node.protocols.sprinkler.messages import Counter
from node.protocols.sprinkler.region.expects import Offer, Path, SwitchReason
from node.protocols.sprinkler.sources import SourcesContext, StreamSources
from node.protocols.sprinkler.storage.history import EventHistory

US_PER_S = 1_000_000


class PrintedSources(StreamSources):
    """Sources by the printed rule. expects: by stream, the counter seq and the time in microseconds."""

    def __init__(self, history: EventHistory, region: int, period_us: int, context: SourcesContext) -> None:
        super().__init__(history, region, period_us, context)
        self.expects: dict[int, tuple[int, int]] = {}

    def advertised(self, proxy: str, counters: Iterable[Counter], now_us: int) -> None:
        """Execute rcvAdvertisement(p, p', cnt, T)."""
        for stream, cnt in sorted((counter.stream, counter.cnt) for counter in counters):
            source = self._sources.get(stream)
            if source is None:
                continue
            source.offers[proxy] = Offer(proxy, cnt, cnt)
            seq, time_us = self.expects.get(stream, (0, 0))
            if self.is_ahead(cnt - seq, max(1, now_us - time_us) / US_PER_S):
                if proxy != source.source:
                    self._switch(stream, source, proxy, SwitchReason.ADVERTISEMENT.value)
                self.expects[stream] = (cnt, now_us)

    def is_ahead(self, ahead: int, elapsed_s: float) -> bool:
        """Return whether a counter is far enough ahead of expects.seq, this time after expects.time."""
        return ahead > self._context.parameters.c / elapsed_s

    def told_paths(self, proxy: str, paths: Mapping[int, Path]) -> None:
        """Ignore paths."""
