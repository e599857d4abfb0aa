"""Which publications a proxy has taken, so that a repeated PUBLISH is acknowledged again and not stored
again.

A driver numbers its events; after a broken connection it repeats what was not acknowledged, with the same
boundaries. For each driver (by name and incarnation) the proxy remembers the last requests, as many as a
driver may have under way.
"""

from collections import OrderedDict
from collections.abc import Callable

from node.protocols.sprinkler.messages import Publish, Published

Publisher = tuple[str, int]  # name, incarnation


class Publications:
    """The latest acknowledgements of every publisher, bounded for each and in the number of publishers."""

    def __init__(self, kept_batches: int, kept_publishers: int) -> None:
        self._kept_batches = kept_batches
        self._kept_publishers = kept_publishers
        self._taken: OrderedDict[Publisher, OrderedDict[tuple[int, int], Published]] = OrderedDict()

    def take(self, publisher: Publisher, message: Publish, store: Callable[[], int]) -> Published:
        """The acknowledgement; only a new publication is stored, by `store`, which gives its first number."""
        taken = self._taken.get(publisher)
        if taken is None:
            taken = self._taken[publisher] = OrderedDict()
            if len(self._taken) > self._kept_publishers:
                self._taken.popitem(last=False)
        else:
            self._taken.move_to_end(publisher)
        key = (message.stream, message.first_request)
        known = taken.get(key)
        if known is None:
            known = taken[key] = Published(message.stream, message.first_request, store(), message.count)
            if len(taken) > self._kept_batches:
                taken.popitem(last=False)
        return known
