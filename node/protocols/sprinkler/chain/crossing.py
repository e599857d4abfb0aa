"""Epochs of a stream change: what others have of the old one is taken first.

A stream's owner that lost its memory begins another epoch (`node.core.epochs`), perhaps with less of the old
one than others have. Whoever takes the new one gets nothing of the old one any more. So a region that comes
to an epoch's beginning first waits until every other region has spoken, and takes from them what they have
and it has not. Proxies advertise where they left former epochs, so that they can be asked for those, too.

It waits no longer than a named time without an event: then what it did not get never comes.

A proxy that starts takes its own streams back from the others before it publishes on them.

The paper's proxies are chains, and lose their state only if all replicas fail (3.3). One without replicas
that is started again would number its streams from 1 and everyone would take new events for old ones. So at
every start it first hears how much of them the others have: the other proxies by their advertisements (and it
subscribes to the furthest, as to any stream), those who publish on them and the clients of its region by
theirs. At a first start all say 0 and it is over as soon as everyone has spoken; it never lasts longer than a
named wait, but for events that are still coming.

What the others tell is never taken for all that there was: they may have lost their own memory, or have more
on its way. So a stream that had begun goes on in a new epoch (`node.core.epochs`) after each such loss, and
events that nobody can send are gone; the log says so.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from node.core.epochs import epoch_of
from node.protocols.sprinkler.region.expects import Offer


def with_rest(offers: Mapping[str, Offer], cnt: int) -> dict[str, Offer]:
    """The offers that have more than `cnt` of its epoch: these proxies can send it, by whatever path they
    get what follows.
    """
    epoch = epoch_of(cnt)
    return {
        proxy: offer
        for proxy, offer in offers.items()
        if any(cnt < has and epoch_of(has) == epoch for has in counters_of(offer))
    }


def counters_of(offer: Offer) -> Iterable[int]:
    """The last event of each epoch that the offering proxy has."""
    return (*offer.ends, offer.cnt)


class Crossing:
    """One stream's way into another epoch, from when its beginning first came. Times are the machine's."""

    __slots__ = ("_cnt", "_progress_us", "asked_us", "is_held", "since_us")

    def __init__(self, cnt: int, now_us: int) -> None:
        self.since_us = now_us
        self.asked_us = now_us  # when the source was last asked
        self.is_held = False  # the source is asked for nothing until all have spoken
        self._cnt = cnt
        self._progress_us = now_us

    def waited_us(self, cnt: int, now_us: int) -> int:
        """For how long nothing of the old epoch has come. `cnt`: how far we are."""
        assert cnt >= self._cnt, "a stream that shrank on its way"
        assert epoch_of(cnt) == epoch_of(self._cnt), "over already"
        if cnt != self._cnt:
            self._cnt, self._progress_us = cnt, now_us
        return now_us - self._progress_us


class Restoration:
    """What is known of the own streams while they are taken back. Times are the machine's.

    regions: the others. served: our drivers and clients, of whom each may know what nobody else does.
    """

    def __init__(self, regions: Iterable[str], served: Iterable[str], until_us: int) -> None:
        self.until_us = until_us
        self.seen = Counter[int]()  # by stream, the largest counter that anyone told
        self._awaited = {*regions, *served}

    def heard(self, name: str, told: Mapping[int, int]) -> None:
        """`name` has spoken, and has so much of our streams."""
        self._awaited.discard(name)
        self.seen |= Counter(told)

    @property
    def unheard(self) -> Sequence[str]:
        """Who has not spoken, sorted."""
        return sorted(self._awaited)

    def is_over(self, cnt: int, furthest: int, now_us: int) -> bool:
        """Whether nothing more of a stream will come. `cnt` is what we have, `furthest` what a connected
        proxy has.
        """
        if cnt < furthest:
            return False
        return now_us >= self.until_us or not self._awaited
