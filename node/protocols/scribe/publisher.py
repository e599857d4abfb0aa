"""A publisher: it numbers its events and sends them to the topic's root, repeatedly until the root has them.

The root is found by routing to the topic's key; its answer contains its address, to which the publisher sends
from then on (draft of 2001, 3.2). After some time without an answer, the root is probed, and all
unacknowledged events are sent again in order: to the same root, by a way that works, or to the new one (3.5).

A restarted publisher does not know its last number, and possibly no node does. So each process generation is
an epoch, later than all before (`node.core.epochs`). A publisher that does not know its number of starts
first asks the root for the progress of the stream, with a PUBLISH of no events.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from node.core.epochs import epoch_of, first_seq_of_epoch
from node.core.peers.peer_pool import Address
from node.protocols.pastry.overlay import Pastry
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.scribe.messages import Publish, Published
from node.protocols.scribe.parameters import ScribeParameters


@dataclass(slots=True)
class ScribePublication:
    """A stream published here. `last`: number of its newest event."""

    topic: int
    stream: int
    last: int
    is_known: bool  # the next number is known
    credentials: int = 0
    acknowledged: int = 0
    root: NodeHandle | None = None
    sent_us: int = 0  # time of the last transmission or acknowledgement
    is_late: bool = False  # unanswered batches are to be sent again
    unanswered: deque[Publish] = field(default_factory=deque)


class ScribePublisher:
    """All streams that a node publishes."""

    def __init__(self, parameters: ScribeParameters, epoch: int | None = 0) -> None:
        self.pastry: Pastry
        self.epoch = epoch  # None: to be requested
        self.publications: dict[int, ScribePublication] = {}
        self._parameters = parameters

    def has_room(self, stream: int) -> bool:
        """Return whether another batch may be sent before the next acknowledgement."""
        known = self.publications.get(stream)
        return known is None or len(known.unanswered) < self._parameters.window

    def check(self) -> None:
        """Assert that no acknowledged batch counts as unanswered."""
        for each in self.publications.values():
            assert all(batch.first_seq > each.acknowledged for batch in each.unanswered), (
                "an acknowledged batch counts as unanswered"
            )
            assert each.acknowledged <= each.last, "acknowledged an unpublished event"

    @property
    def is_silent(self) -> bool:
        """Whether everything is acknowledged."""
        return not any(each.unanswered for each in self.publications.values())

    def publish(
        self, topic: int, stream: int, count: int, payload: bytes, now_us: int, *, credentials: int = 0
    ) -> Publish:
        """Publish a batch; return it with its number."""
        publication = self.publications.get(stream)
        if publication is None:
            last, is_known = first_seq_of_epoch(self.epoch or 0) - 1, self.epoch is not None
            publication = ScribePublication(topic, stream, last, is_known, acknowledged=last)
            self.publications[stream] = publication
        own = self.pastry.own
        publication.credentials = credentials
        message = Publish(
            topic, own.id, own.address, credentials, stream, publication.last + 1, count, payload
        )
        publication.last += count
        if not publication.unanswered:
            publication.sent_us = now_us
        publication.unanswered.append(message)
        self._send(publication, message)
        self._drop_if_best_effort(publication)
        return message

    def _drop_if_best_effort(self, publication: ScribePublication) -> None:
        """Drop all unanswered batches if delivery is best-effort."""
        if self._parameters.is_best_effort and publication.is_known:
            publication.unanswered.clear()
            publication.acknowledged = publication.last

    def _send(self, publication: ScribePublication, message: Publish) -> None:
        if not publication.is_known:
            message = replace(message, first_seq=0, count=0, payload=b"")
        if publication.root is None:
            self.pastry.route(message, message.topic)
        else:
            self.pastry.send(message, publication.root.address)

    def published(self, sender: Address, message: Published, now_us: int) -> Sequence[Publish]:
        """Process the root's answer; return the batches that it acknowledges."""
        publication = self.publications.get(message.stream)
        if publication is None:
            return ()
        is_here = sender == self.pastry.own.address
        publication.root = None if is_here else NodeHandle(message.id, sender)
        if not publication.is_known:
            self._start_numbering(publication, message.next)
            return ()
        unanswered, acknowledged = publication.unanswered, []
        while unanswered and unanswered[0].first_seq + unanswered[0].count <= message.next:
            batch = unanswered.popleft()
            acknowledged.append(batch)
            publication.acknowledged = batch.first_seq + batch.count - 1
            publication.sent_us = now_us
        return acknowledged

    def _start_numbering(self, publication: ScribePublication, following: int) -> None:
        """Start after the root's progress; in a new epoch if an earlier process began the stream."""
        publication.is_known = True
        publication.last = 0 if following == 1 else first_seq_of_epoch(epoch_of(following) + 1) - 1
        batches = list(publication.unanswered)
        publication.unanswered.clear()
        for batch in batches:
            publication.unanswered.append(replace(batch, first_seq=publication.last + 1))
            publication.last += batch.count
            self._send(publication, publication.unanswered[-1])
        self._drop_if_best_effort(publication)

    def failed(self, node: NodeHandle) -> None:
        """Forget the root if it failed; routing finds the next one."""
        for publication in self.publications.values():
            if publication.root == node:
                publication.root = None

    def denied(self, topic: int) -> None:
        """Drop unanswered batches of a topic, since the root denies publication."""
        for publication in self.publications.values():
            if publication.topic == topic:
                publication.unanswered.clear()

    def tick(self, now_us: int) -> None:
        """Send unanswered batches again, after a probe has found the way to the root."""
        for publication in self.publications.values():
            root = publication.root
            if root is not None and self.pastry.reach.is_coming(root.address):
                publication.sent_us = now_us  # over a slow link
            late = now_us - publication.sent_us >= self._parameters.retransmit_us
            if publication.unanswered and late:
                publication.sent_us, publication.is_late = now_us, True
                if publication.root is not None:
                    self.pastry.miss(publication.root)
            if publication.is_late and not self.pastry.is_missed(publication.root):
                publication.is_late = False
                for message in publication.unanswered:
                    self._send(publication, message)
