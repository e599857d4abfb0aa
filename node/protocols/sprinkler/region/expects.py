"""Choice of the proxy from which a proxy takes a stream: the rule of rcvAdvertisement (paper 3.1, Fig. 1).

The paper keeps expects[s] = (source, seq, time) and switches to an advertiser p' if cnt > expects.seq + C /
(T - expects.time). Taken literally, every stream flaps at every C, and two proxies that take a stream from
each other can block each other forever. This rule needs neither C nor rates nor clocks. It uses two facts
that a proxy sends about each stream: its counter, once in a period (ADVERTISEMENT), and, at once when it
changes, its path (PATHS): the regions through which it gets the stream, from its own to the owner's.

- A proxy whose path leads through this region is never chosen.
- A source without a path to the owner is left as soon as another proxy has one; the shortest path is taken.
- A source is left for a shorter path, above all the owner's own, if its proxy keeps up.
- A source is left if it does not keep up: when another proxy advertises, events that this one had an
  advertisement ago have still not arrived. A source left for this reason is not taken back for its path until
  the path changes.
- If no proxy has a path (the owner is gone), or while a region recovers its own stream, only counters decide:
  a proxy that is ahead is taken, the furthest first.

docs/subscription-rule.md proves that every stream resumes in every connected graph, and within which time.
"""

from collections.abc import Container, Iterable, Mapping
from enum import Enum

from node.core.content.value import value

Path = tuple[int, ...]  # regions, from the sender's to the owner's; empty: none


class SwitchReason(Enum):
    """Reason for taking a stream from another proxy, as logged."""

    PATH = "path"  # the source has lost its path to the owner, or there was no source
    DIRECT = "direct"  # the owner itself is connected (again)
    SHORTER = "shorter"  # a shorter path to the owner
    ADVERTISEMENT = "advertisement"  # another proxy is ahead, and the source does not keep up


@value
class Offer:
    """A connected proxy's state of one stream: its latest counter, the one before, and its path.

    earlier: its counter at least an advertisement ago; 0 while unknown. ends: the last events that it has of
    former epochs.
    """

    proxy: str
    cnt: int
    earlier: int
    path: Path = ()
    ends: tuple[int, ...] = ()


@value
class Expects:
    """The source of a stream, or None; and its known counter. Without a source: the own counter."""

    source: str | None
    seq: int


def choose(
    region: int, offers: Mapping[str, Offer], expects: Expects, overdue: Container[str] = ()
) -> tuple[str, SwitchReason] | None:
    """Return the proxy from which the proxy of `region` must take a stream from now on; None: no change.

    offers: of all connected proxies that advertised. overdue: those that were left for not keeping up and
    have the same path since. An offer's path must be reliable: a region that recovers its own stream uses
    offers without paths.
    """
    source = offers.get(expects.source or "")
    if source is not None and source.path and region not in source.path:
        hops, kept_up, why = len(source.path), source.earlier, SwitchReason.SHORTER
        better = [offer for offer in offers.values() if 0 < len(offer.path) < hops and offer.cnt >= kept_up]
    else:
        better, why = [offer for offer in offers.values() if offer.path], SwitchReason.PATH
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
    return best.proxy, SwitchReason.ADVERTISEMENT


def _taken(offer: Offer, why: SwitchReason) -> tuple[str, SwitchReason]:
    return offer.proxy, SwitchReason.DIRECT if len(offer.path) == 1 else why


def _shortest(offers: Iterable[Offer]) -> Offer:
    """Return the offer with the shortest path; among equals the furthest, then the first by name."""
    return min(offers, key=lambda offer: (len(offer.path), -offer.cnt, offer.proxy))
