"""Which publications a region has taken, so that a repeated PUBLISH is acknowledged and not stored again.

A publisher numbers its events; after a broken connection it repeats what was not acknowledged, with the same
boundaries, perhaps at another head. So every replica knows the latest publications of each publisher (by
name and incarnation), as many as one may have under way: each gets them along the chain (PUBLICATION), always
before their events. A process counts its requests on each stream by itself, so there it is one publisher.

Entries of a stream are in the order of their sequence numbers. A predecessor that begins anew sends all of
them again: those that are known already change nothing. Another one makes void what is known from its first
number on: that was taken by a head that died before it was passed on, and its numbers are used anew.

A publisher that starts again under its name takes the place of its earlier incarnation. Beyond the limit the
publisher is forgotten that has published nothing for the longest time: if it then repeats a publication whose
acknowledgement it did not get, its events are published twice.
"""

from collections import OrderedDict
from collections.abc import Sequence

from node.protocols.sprinkler.messages import Publication

Publisher = tuple[int, str, int]  # stream, name, incarnation
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
        self._incarnations: dict[tuple[int, str], int] = {}  # by stream and name, the latest
        self._orders: dict[int, list[Publication]] = {}  # by stream: all, with some that are forgotten
        self._live = 0
        self._sent: dict[int, int] = {}  # how many of these the follower was sent
        self._unsent = 0  # how many it was not

    def known(self, publisher: Publisher, first_request: int) -> Publication | None:
        """The publication that this request became, if it was taken."""
        taken = self._taken.get(publisher)
        return taken.get(first_request) if taken is not None else None

    def add(self, publication: Publication) -> bool:
        """A publication was taken; false if it was known. If not, what was known at its numbers is void."""
        publisher = publisher_of(publication)
        if self.known(publisher, publication.first_request) == publication:
            return False
        self.forget_beyond(publication.stream, publication.first_seq - 1)
        self._forget_earlier(publisher)
        taken = self._taken.setdefault(publisher, OrderedDict())
        self._taken.move_to_end(publisher)
        self._live += publication.first_request not in taken
        taken[publication.first_request] = publication
        taken.move_to_end(publication.first_request)
        order = self._orders.setdefault(publication.stream, [])
        assert not order or last_seq(order[-1]) < publication.first_seq, "two publications of one number"
        order.append(publication)
        self._unsent += 1
        if len(taken) > self._kept_batches:
            taken.popitem(last=False)
            self._live -= 1
        if len(self._taken) > self._kept_publishers:
            self._forget(next(iter(self._taken)))
            self.forgotten += 1
        if sum(map(len, self._orders.values())) > 2 * self._live + DEAD_ENTRIES:
            self._compact()
        return True

    def forget_beyond(self, stream: int, cnt: int) -> None:
        """Forget publications of which events after `cnt` are part: these are not stored."""
        order = self._orders.get(stream, [])
        while order and last_seq(order[-1]) > cnt:
            publication = order.pop()
            if self._is_live(publication):
                del self._taken[publisher_of(publication)][publication.first_request]
                self._live -= 1
            if self._sent.get(stream, 0) > len(order):
                self._sent[stream] = len(order)
            else:
                self._unsent -= 1

    def beyond(self, stream: int, cnt: int) -> Sequence[Publication]:
        """The publications of a stream that end after `cnt`, in order."""
        order = self._orders.get(stream, [])
        at = len(order)
        while at and last_seq(order[at - 1]) > cnt:
            at -= 1
        return [publication for publication in order[at:] if self._is_live(publication)]

    def rewind(self) -> None:
        """The follower is another one, or has to have everything again."""
        self._sent.clear()
        self._unsent = sum(map(len, self._orders.values()))

    def take_unsent(self, limit: int) -> Sequence[Publication]:
        """What the follower was not sent, at most so many; it counts as sent from now on."""
        found: list[Publication] = []
        for stream, order in self._orders.items():
            sent = self._sent.get(stream, 0)
            some = order[sent : sent + limit - len(found)]
            self._sent[stream] = sent + len(some)
            found += some
        self._unsent -= len(found)
        return [publication for publication in found if self._is_live(publication)]

    @property
    def all_sent(self) -> bool:
        """Whether the follower was sent everything."""
        return not self._unsent

    def check(self) -> None:
        """Assert that there are no more than may be, and that they are counted right."""
        assert len(self._taken) <= self._kept_publishers, "more publishers than are to be remembered"
        assert all(len(taken) <= self._kept_batches for taken in self._taken.values()), "more than under way"
        assert self._live == sum(map(len, self._taken.values())), "publications counted wrong"
        unsent = sum(len(order) - self._sent.get(stream, 0) for stream, order in self._orders.items())
        assert self._unsent == unsent, "publications to be sent counted wrong"

    def _forget_earlier(self, publisher: Publisher) -> None:
        """The process has started again: nobody repeats what it published before."""
        stream, name, incarnation = publisher
        earlier = self._incarnations.get((stream, name), incarnation)
        if earlier != incarnation:
            self._forget((stream, name, earlier))
        self._incarnations[stream, name] = incarnation

    def _forget(self, publisher: Publisher) -> None:
        self._live -= len(self._taken.pop(publisher, ()))
        stream, name, incarnation = publisher
        if self._incarnations.get((stream, name)) == incarnation:
            del self._incarnations[stream, name]

    def _is_live(self, publication: Publication) -> bool:
        return self.known(publisher_of(publication), publication.first_request) is publication

    def _compact(self) -> None:
        assert 0 <= self._live <= sum(map(len, self._orders.values())), "counted wrong"
        for stream, order in self._orders.items():
            self._sent[stream] = sum(map(self._is_live, order[: self._sent.get(stream, 0)]))
            order[:] = filter(self._is_live, order)
        self._unsent = sum(len(order) - self._sent[stream] for stream, order in self._orders.items())


def publisher_of(publication: Publication) -> Publisher:
    """The publisher of a publication."""
    return publication.stream, publication.name, publication.incarnation


def last_seq(publication: Publication) -> int:
    """The sequence number of a publication's last event."""
    return publication.first_seq + publication.count - 1
