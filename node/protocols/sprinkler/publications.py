"""Which publications a region has taken, so that a repeated PUBLISH is acknowledged and not stored again.

A publisher numbers its events; after a broken connection it repeats what was not acknowledged, with the same
boundaries, perhaps at another head. So every replica knows the latest publications of each publisher (by
name and incarnation), as many as one may have under way: each gets them along the chain (PUBLICATION), always
before their events.

Entries are in the order of their sequence numbers. A predecessor that begins anew sends all of them again:
those that are known already change nothing. Another one makes void what is known from its first number on:
that was taken by a head that died before it was passed on, and its numbers are used anew.

A publisher that starts again under its name takes the place of its earlier incarnation. Beyond the limit the
publisher is forgotten that has published nothing for the longest time: if it then repeats a publication whose
acknowledgement it did not get, its events are published twice.
"""

from collections import OrderedDict
from collections.abc import Sequence

from node.protocols.sprinkler.messages import Publication

Publisher = tuple[str, int]  # name, incarnation
DEAD_ENTRIES = 64  # forgotten publications in the list of all, before it is made anew


class Publications:
    """The latest publications, bounded for each publisher and in the number of publishers.

    One follower is served: `take_unsent` gives what it has not been sent.
    """

    def __init__(self, kept_batches: int, kept_publishers: int) -> None:
        self.forgotten = 0  # publishers, because there were too many
        self._kept_batches = kept_batches
        self._kept_publishers = kept_publishers
        self._taken: OrderedDict[Publisher, OrderedDict[int, Publication]] = OrderedDict()
        self._incarnations: dict[str, int] = {}  # the latest of each publisher
        self._order: list[Publication] = []  # all, with some that are forgotten
        self._live = 0
        self._sent = 0  # how many of `_order` the follower was sent

    def known(self, publisher: Publisher, first_request: int) -> Publication | None:
        """The publication that this request became, if it was taken."""
        taken = self._taken.get(publisher)
        return taken.get(first_request) if taken is not None else None

    def add(self, publication: Publication) -> bool:
        """A publication was taken; false if it was known. If not, what was known at its numbers is void."""
        publisher = (publication.name, publication.incarnation)
        if self.known(publisher, publication.first_request) == publication:
            return False
        self.forget_beyond(publication.stream, publication.first_seq - 1)
        self._forget_earlier(publisher)
        taken = self._taken.setdefault(publisher, OrderedDict())
        self._taken.move_to_end(publisher)
        self._live += publication.first_request not in taken
        taken[publication.first_request] = publication
        taken.move_to_end(publication.first_request)
        self._order.append(publication)
        if len(taken) > self._kept_batches:
            taken.popitem(last=False)
            self._live -= 1
        if len(self._taken) > self._kept_publishers:
            self._forget(next(iter(self._taken)))
            self.forgotten += 1
        if len(self._order) > 2 * self._live + DEAD_ENTRIES:
            self._compact()
        return True

    def forget_beyond(self, stream: int, cnt: int) -> None:
        """Forget publications of which events after `cnt` are part: these are not stored."""
        while (order := self._order) and order[-1].stream == stream and last_seq(order[-1]) > cnt:
            publication = order.pop()
            if self._is_live(publication):
                del self._taken[publication.name, publication.incarnation][publication.first_request]
                self._live -= 1
        self._sent = min(self._sent, len(self._order))

    def beyond(self, cnt: int) -> Sequence[Publication]:
        """Those that end after `cnt`, in order."""
        at = len(self._order)
        while at and last_seq(self._order[at - 1]) > cnt:
            at -= 1
        return [publication for publication in self._order[at:] if self._is_live(publication)]

    def rewind(self) -> None:
        """The follower is another one, or has to have everything again."""
        self._sent = 0

    def take_unsent(self, limit: int) -> Sequence[Publication]:
        """What the follower was not sent, at most so many; it counts as sent from now on."""
        found = self._order[self._sent : self._sent + limit]
        self._sent += len(found)
        return [publication for publication in found if self._is_live(publication)]

    @property
    def all_sent(self) -> bool:
        """Whether the follower was sent everything."""
        return self._sent == len(self._order)

    def _forget_earlier(self, publisher: Publisher) -> None:
        """The process has started again: nobody repeats what it published before."""
        name, incarnation = publisher
        earlier = self._incarnations.get(name, incarnation)
        if earlier != incarnation:
            self._forget((name, earlier))
        self._incarnations[name] = incarnation

    def _forget(self, publisher: Publisher) -> None:
        self._live -= len(self._taken.pop(publisher, ()))
        if self._incarnations.get(publisher[0]) == publisher[1]:
            del self._incarnations[publisher[0]]

    def _is_live(self, publication: Publication) -> bool:
        publisher = (publication.name, publication.incarnation)
        return self.known(publisher, publication.first_request) is publication

    def _compact(self) -> None:
        self._sent = sum(self._is_live(publication) for publication in self._order[: self._sent])
        self._order = [publication for publication in self._order if self._is_live(publication)]


def last_seq(publication: Publication) -> int:
    """The number of its last event."""
    return publication.first_seq + publication.count - 1
