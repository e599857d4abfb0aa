"""Into another epoch of a stream: what others have of the old one is taken first.

A stream's owner that lost its memory begins another epoch (`node.core.epochs`), perhaps with less of the old
one than others have. Whoever takes the new one gets nothing of the old one any more. So a region that comes
to an epoch's beginning first waits until every other region has spoken, and takes from them what they have
and it has not. Proxies advertise where they left former epochs, so that they can be asked for those, too.

It waits no longer than a named time without an event: then what it did not get never comes.
"""

from collections.abc import Iterable, Mapping

from node.core.epochs import epoch_of
from node.protocols.sprinkler.expects import Offer


def with_rest(offers: Mapping[str, Offer], cnt: int) -> dict[str, Offer]:
    """Those offers that have more than `cnt` of its epoch: whoever has it can send it, by whatever path it
    gets what follows.
    """
    epoch = epoch_of(cnt)
    return {
        proxy: offer
        for proxy, offer in offers.items()
        if any(cnt < has and epoch_of(has) == epoch for has in counters_of(offer))
    }


def counters_of(offer: Offer) -> Iterable[int]:
    """Of each epoch, the last event that it has."""
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
        if cnt != self._cnt:
            self._cnt, self._progress_us = cnt, now_us
        return now_us - self._progress_us
