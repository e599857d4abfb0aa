"""Transition between epochs of a stream: events of the old epoch are collected from others first.

If a stream's owner loses its state, it begins another epoch (`node.core.epochs`), perhaps with fewer events
of the old epoch than others have. A region that has entered the new epoch can no longer receive events of the
old one. So a region that receives the beginning of an epoch first waits until every other region has
advertised, and takes from them the events that it lacks. Proxies advertise where they left former epochs, so
that they can be asked for those, too.

The wait ends after a named time without an event: the missing events are then lost.

A proxy that starts recovers its own streams from the others before it publishes on them.

The paper's proxies are chains, and lose their state only if all replicas fail (3.3). If a single proxy
restarted, it would number its streams from 1 and others would take new events for old ones. So at every start
it first learns the others' counters of its streams: the other proxies send advertisements (and it subscribes
to the furthest one, as for any stream), and so do its publishers and the clients of its region. At a first
start all counters are 0 and the recovery ends when all have advertised. It never lasts longer than a named
wait, except for events that are still arriving.

The others' counters may be incomplete: others may have lost their state, or have events in flight. So a
stream that had begun continues in a new epoch (`node.core.epochs`) after each such loss. Events that no
process can send are lost, which the log reports.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from node.core.epochs import epoch_of
from node.protocols.sprinkler.region.expects import Offer


def with_rest(offers: Mapping[str, Offer], cnt: int) -> dict[str, Offer]:
    """Return the offers that have events of its epoch after `cnt`.

    These proxies can send those events, whatever their path for later ones.
    """
    epoch = epoch_of(cnt)
    return {
        proxy: offer
        for proxy, offer in offers.items()
        if any(cnt < has and epoch_of(has) == epoch for has in counters_of(offer))
    }


def counters_of(offer: Offer) -> Iterable[int]:
    """Return the last event of each epoch that the offering proxy has."""
    return (*offer.ends, offer.cnt)


class EpochTransition:
    """One stream's transition to another epoch, since its beginning arrived. Times are the machine's."""

    __slots__ = ("_cnt", "_progress_us", "asked_us", "is_held", "since_us")

    def __init__(self, cnt: int, now_us: int) -> None:
        self.since_us = now_us
        self.asked_us = now_us  # when the source was last asked
        self.is_held = False  # the source is asked for nothing until all have advertised
        self._cnt = cnt
        self._progress_us = now_us

    def waited_us(self, cnt: int, now_us: int) -> int:
        """Return for how long no event of the old epoch has arrived. `cnt`: the own counter."""
        assert cnt >= self._cnt, "a stream that shrank in transition"
        assert epoch_of(cnt) == epoch_of(self._cnt), "the transition is already complete"
        if cnt != self._cnt:
            self._cnt, self._progress_us = cnt, now_us
        return now_us - self._progress_us


class Restoration:
    """Progress of the recovery of the own streams. Times are the machine's.

    regions: all other regions. served: the own region's drivers and clients. Any of them may be the only one
    that knows of some events.
    """

    def __init__(self, regions: Iterable[str], served: Iterable[str], until_us: int) -> None:
        self.until_us = until_us
        self.seen = Counter[int]()  # by stream, the largest counter that was reported
        self._awaited = {*regions, *served}

    def counters_reported(self, name: str, counters: Mapping[int, int]) -> None:
        """Note that `name` has reported its counters of the own streams."""
        self._awaited.discard(name)
        self.seen |= Counter(counters)

    @property
    def unheard(self) -> Sequence[str]:
        """Processes that have not reported, sorted."""
        return sorted(self._awaited)

    def is_over(self, cnt: int, furthest: int, now_us: int) -> bool:
        """Return whether nothing more of a stream will arrive.

        `cnt` is the own counter, `furthest` that of the furthest connected proxy.
        """
        if cnt < furthest:
            return False
        return now_us >= self.until_us or not self._awaited
