"""The accepted publications of a region, so that a repeated PUBLISH is acknowledged and not stored again.

A publisher numbers its events; after a broken connection it repeats unacknowledged batches, with the same
boundaries, perhaps at another head. So every replica knows the latest publications of each publisher (by name
and incarnation), up to the number that may be unacknowledged: it receives them along the chain (PUBLICATION),
always before their events. A process numbers its requests for each stream separately, so each of its streams
counts as one publisher.

Entries of a stream are in the order of their sequence numbers. A predecessor that begins again sends all of
them: known ones have no effect. A different one voids the known ones from its first number on: a head that
failed before forwarding them had accepted those, and their numbers are used again.

A restarted publisher replaces its earlier incarnation. Beyond the limit, the publisher that has published
nothing for the longest time is forgotten: if it then repeats a publication whose acknowledgement was lost,
its events are published twice.
"""

from collections import OrderedDict
from collections.abc import Sequence

from node.protocols.sprinkler.messages import Publication

Publisher = tuple[int, str, int]  # stream, name, incarnation
DEAD_ENTRIES = 64  # forgotten publications in the list of all, before it is rebuilt


class Publications:
    """The latest publications, bounded for each publisher and in the number of publishers.

    One follower is served: `take_unsent` returns publications that were not sent to it.
    """

    def __init__(self, kept_batches: int, kept_publishers: int) -> None:
        self.forgotten = 0  # number of publishers forgotten because of the limit
        self._kept_batches = kept_batches
        self._kept_publishers = kept_publishers
        self._taken: OrderedDict[Publisher, OrderedDict[int, Publication]] = OrderedDict()
        self._incarnations: dict[tuple[int, str], int] = {}  # by stream and name, the latest
        self._orders: dict[int, list[Publication]] = {}  # by stream: all, including some that are forgotten
        self._live = 0
        self._sent: dict[int, int] = {}  # number of these that were sent to the follower
        self._unsent = 0  # number of those that were not

    def known(self, publisher: Publisher, first_request: int) -> Publication | None:
        """Return the publication of this request, if it was accepted."""
        taken = self._taken.get(publisher)
        return taken.get(first_request) if taken is not None else None

    def add(self, publication: Publication) -> bool:
        """Add a publication; return False if it was known. A new one voids known ones at its numbers."""
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
        assert not order or last_seq(order[-1]) < publication.first_seq, "two publications with one number"
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
        """Forget publications with events after `cnt`: these are not stored."""
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
        """Return the publications of a stream that end after `cnt`, in order."""
        order = self._orders.get(stream, [])
        at = len(order)
        while at and last_seq(order[at - 1]) > cnt:
            at -= 1
        return [publication for publication in order[at:] if self._is_live(publication)]

    def rewind(self) -> None:
        """Mark everything as unsent, for another follower or one that needs everything again."""
        self._sent.clear()
        self._unsent = sum(map(len, self._orders.values()))

    def take_unsent(self, limit: int) -> Sequence[Publication]:
        """Return at most `limit` unsent publications; they count as sent from now on."""
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
        """Assert the limits and counters."""
        assert len(self._taken) <= self._kept_publishers, "more publishers than the limit"
        assert all(len(taken) <= self._kept_batches for taken in self._taken.values()), (
            "more publications than the window"
        )
        assert self._live == sum(map(len, self._taken.values())), "wrong number of publications"
        unsent = sum(len(order) - self._sent.get(stream, 0) for stream, order in self._orders.items())
        assert self._unsent == unsent, "wrong number of unsent publications"

    def _forget_earlier(self, publisher: Publisher) -> None:
        """Forget the earlier incarnation of a restarted process: its publications are not repeated."""
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
        assert 0 <= self._live <= sum(map(len, self._orders.values())), "wrong number of publications"
        for stream, order in self._orders.items():
            self._sent[stream] = sum(map(self._is_live, order[: self._sent.get(stream, 0)]))
            order[:] = filter(self._is_live, order)
        self._unsent = sum(len(order) - self._sent[stream] for stream, order in self._orders.items())


def publisher_of(publication: Publication) -> Publisher:
    """Return the publisher of a publication."""
    return publication.stream, publication.name, publication.incarnation


def last_seq(publication: Publication) -> int:
    """Return the sequence number of a publication's last event."""
    return publication.first_seq + publication.count - 1
