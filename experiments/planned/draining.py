"""When a run has drained: publishers have all answers, and no required event is in flight.

Counts are the highest sequence numbers by stream, as processes report them. If the contract allows losses, or
if counts do not show which events a subscriber must get, a run has drained after the settle time. The
analysis decides which events each client must have got (`analysis.timelines.delivery.expected`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from experiments.declared import Contract

LOSSLESS = ("exactly-once", "at-least-once")


def settles_by_time(contract: Contract) -> bool:
    """Return whether counts cannot show that everything arrived."""
    return contract.delivery not in LOSSLESS or contract.audience == "content"


def reached(published: Mapping[int, int], delivered: Iterable[Mapping[int, int]], contract: Contract) -> bool:
    """Return whether each subscriber has every event published so far that it must get.

    If that depends on its subscriptions, a subscriber reports the streams to which it is subscribed.
    """

    if settles_by_time(contract):
        return True
    to_all = contract.audience == "all"
    return all(
        client.get(stream, 0) >= published.get(stream, 0)
        for client in delivered
        for stream in (published if to_all else client)
    )


def highest(published: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the highest sequence number of each stream."""
    found: dict[int, int] = {}
    for each in published:
        for stream, sequence in each.items():
            found[stream] = max(sequence, found.get(stream, 0))
    return found


def lowest(delivered: Sequence[Mapping[int, int]], contract: Contract) -> dict[int, int]:
    """Return the lowest sequence number of each stream that all clients have.

    A client that must get the stream and has nothing of it counts as 0.
    """
    found: dict[int, int] = {}
    having: Counter[int] = Counter()
    for client in delivered:
        having.update(client.keys())
        for stream, sequence in client.items():
            found[stream] = min(sequence, found.get(stream, sequence))
    all_must = contract.audience == "all"
    return {s: 0 if all_must and having[s] < len(delivered) else found[s] for s in sorted(found)}
