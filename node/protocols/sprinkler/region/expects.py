"""From which proxy a proxy takes a stream: the rule of rcvAdvertisement (paper 3.1, Fig. 1).

The paper keeps expects[s] = (source, seq, time) and switches to an advertiser p' if
cnt > expects.seq + C / (T - expects.time). By the letter every stream flaps at every C, and two proxies that
take a stream from each other can hold each other for ever. The rule taken needs neither C nor rates nor
clocks. It rests on two things that a proxy says of each stream: its counter, once in a period
(ADVERTISEMENT), and, at once when it changes, its path (PATHS): the regions through which it gets the stream,
from its own to the owner's.

- Never from a proxy whose path leads through this region.
- A source without a path to the owner is left as soon as another proxy has one; the shortest path is taken.
- A source is left for a shorter path, the owner's own above all, if who offers it keeps up.
- A source is left if it does not keep up: when another advertises, what that one had an advertisement ago has
  still not come. One that was left for this is not taken back for its path until that changes.
- Where nobody has a path (the owner is gone), or while a region takes its own stream back, counters alone
  decide: whoever is ahead is taken, the furthest first.

docs/subscription-rule.md shows why every stream flows again in every connected graph, and within what time.
"""

from collections.abc import Container, Iterable, Mapping
from enum import Enum

from node.core.content.value import value

Path = tuple[int, ...]  # regions, from the one that tells it to the owner; empty: none


class Why(Enum):
    """Why a stream is taken from another proxy, as the log says it."""

    PATH = "path"  # the source has no path to the owner any more, or there was no source
    DIRECT = "direct"  # the owner itself is there (again)
    SHORTER = "shorter"  # a shorter path to the owner
    ADVERTISEMENT = "advertisement"  # another proxy is ahead, and the source does not keep up


@value
class Offer:
    """What a connected proxy says of one stream: its latest counter, the one before, and its path.

    earlier: what it had an advertisement ago, or more; 0 while that is not known. ends: the last events that
    it has of former epochs.
    """

    proxy: str
    cnt: int
    earlier: int
    path: Path = ()
    ends: tuple[int, ...] = ()


@value
class Expects:
    """The source of a stream, or None; and how far it is known to have got. Without one: the own counter."""

    source: str | None
    seq: int


def choose(
    region: int, offers: Mapping[str, Offer], expects: Expects, overdue: Container[str] = ()
) -> tuple[str, Why] | None:
    """From whom the proxy of `region` is to take a stream from now on; None: no change.

    offers: of all connected proxies that advertised. overdue: those that were left for not keeping up and
    have told no other path since. An offer's path counts only if it is to be trusted: whoever takes its
    own stream back gives offers without paths.
    """
    source = offers.get(expects.source or "")
    if source is not None and source.path and region not in source.path:
        hops, kept_up, why = len(source.path), source.earlier, Why.SHORTER
        better = [offer for offer in offers.values() if 0 < len(offer.path) < hops and offer.cnt >= kept_up]
    else:
        better, why = [offer for offer in offers.values() if offer.path], Why.PATH
    better = [offer for offer in better if region not in offer.path and offer.proxy not in overdue]
    if better:
        return _taken(_shortest(better), why)
    ahead = [
        offer
        for offer in offers.values()
        if (offer.cnt if source is None else offer.earlier) > expects.seq
        and region not in offer.path
        and offer is not source
    ]
    if not ahead:
        return None
    best = _shortest([offer for offer in ahead if offer.path] or ahead)
    return best.proxy, Why.ADVERTISEMENT


def _taken(offer: Offer, why: Why) -> tuple[str, Why]:
    return offer.proxy, Why.DIRECT if len(offer.path) == 1 else why


def _shortest(offers: Iterable[Offer]) -> Offer:
    """The shortest path; of several the furthest, and of those the first by name."""
    return min(offers, key=lambda offer: (len(offer.path), -offer.cnt, offer.proxy))
