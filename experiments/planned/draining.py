"""When a run has drained: publishers have all answers, and no required event is in flight.

Counts are the highest sequence numbers by stream, as processes report them. If the contract allows losses, or
if counts do not show what a subscriber must get, only the settle time is waited for. The analysis decides
which events each client must have got (`analysis.timelines.delivery.expected`).
"""

from collections.abc import Iterable, Mapping

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
