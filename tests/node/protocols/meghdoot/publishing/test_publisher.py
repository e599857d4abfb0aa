"""Retransmissions of a publisher and their order."""

from types import SimpleNamespace

from node.core.content.content import ContentAttribute
from node.protocols.meghdoot.messages import SubscriberGeneration, Undelivered, Visited
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.publishing.event import EventReader, payload_of
from node.protocols.meghdoot.publishing.publisher import FIRST, MeghdootPublisher
from node.protocols.meghdoot.region import all_points
from node.protocols.meghdoot.space import Space

SPACE = Space((ContentAttribute("price", "real", 0.0, 100.0),))
ZONE, SILENT = 1, 9
TICK_US = 100_000


def test_all_due_events_are_resent_in_turn():
    """Give each event a subscriber that does not answer, so that the oldest events are always due."""
    sent = []
    mail = SimpleNamespace(
        own=1, now_us=0, late_us=0, is_failed=lambda address: False, miss=lambda address: None,
        route=lambda message: None, send=lambda address, message: sent.append(message.first_seq),
    )  # fmt: skip
    publisher = MeghdootPublisher(MeghdootParameters(), mail, EventReader(SPACE), epoch=0)
    for _ in range(FIRST):
        publisher.publish(0, payload_of((15.0,), 60))
    publication = publisher.publications[0]
    for number, pending in list(publication.pending.items()):
        publisher.undelivered(Undelivered(0, number, 0, ZONE, (SubscriberGeneration(SILENT, 1),)))
        publisher.confirmed(Visited(0, number, 0, ZONE, all_points(pending.seen.steps), 1, 0, 0))
    publication.window.size = 8.0  # one at a time
    while mail.now_us < FIRST * TICK_US:
        mail.now_us += TICK_US
        publisher.tick()
    assert sorted(sent) == list(publication.pending)
    mail.now_us += MeghdootParameters().gone_us
    publisher.tick()
    assert len(publication.pending) == FIRST - 1, "a subscriber that stays away is given up"
