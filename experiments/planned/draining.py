"""When a run has drained: publishers have all answers, and nothing that must come is on its way any more.

Counts are the highest sequence numbers by stream, as processes report them. Where the contract allows losses,
or where no count says what a subscriber is to get, nothing is waited for but the time to settle. What each
client must have got to the event, the analysis says (`analysis.timelines.delivery.expected`).
"""

from collections.abc import Iterable, Mapping

from experiments.declared import Contract

LOSSLESS = ("exactly-once", "at-least-once")


def settles_by_time(contract: Contract) -> bool:
    """Whether counts cannot tell that everything came."""
    return contract.delivery not in LOSSLESS or contract.audience == "content"


def reached(published: Mapping[int, int], delivered: Iterable[Mapping[int, int]], contract: Contract) -> bool:
    """Whether each subscriber has as much as was published, of all that it is to get.

    Where that depends on its subscriptions, a subscriber reports the streams that it is subscribed to.
    """
    if settles_by_time(contract):
        return True
    everybody = contract.audience == "all"
    return all(
        client.get(stream, 0) >= published.get(stream, 0)
        for client in delivered
        for stream in (published if everybody else client)
    )
