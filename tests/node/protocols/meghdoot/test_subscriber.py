"""Events that count for a subscriber: published during its subscription, however late they arrive."""

from types import SimpleNamespace

import pytest

from node.core.content.content import ContentAttribute
from node.core.specification import PlannedSubscription as Asked
from node.protocols.meghdoot.collected_answers import CollectedAnswers
from node.protocols.meghdoot.messages import Notify, UpdateName
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.publishing.event import EventReader, payload_of
from node.protocols.meghdoot.space import Space
from node.protocols.meghdoot.subscriber import MeghdootSubscriber
from node.protocols.meghdoot.subscriptions import version_of

SPACE = Space((ContentAttribute("price", "real", 0.0, 100.0),))
ZONE, LIFE = 2, 3
ASKED_US, ENDED_US = 5_000_000, 9_000_000


@pytest.fixture
def subscriber():
    """Return a subscriber to prices from 10 to 20 from 5 s to 9 s. Its time is 12 s."""
    mail = SimpleNamespace(
        own=1, now_us=ASKED_US, late_us=0, own_late_since=lambda us: 0, route=lambda message: None
    )
    delivered, answers = [], CollectedAnswers(mail)
    made = MeghdootSubscriber(
        MeghdootParameters(), mail, SPACE, EventReader(SPACE), answers,
        life=LIFE, interest=lambda kind, asked: None,
        deliver=delivered.append,
    )  # fmt: skip
    made.delivered, made.answers = delivered, answers
    for count, (at_us, is_on) in enumerate(((ASKED_US, True), (ENDED_US, False))):
        mail.now_us = at_us
        made.subscribe(Asked(0, 7, is_on, ((10.0, 20.0),)))
        made.confirmed([UpdateName(7, version_of(LIFE, count))])
    mail.now_us = 12_000_000
    return made


@pytest.mark.parametrize(
    ("published_us", "price", "counts"),
    [
        (ASKED_US, 15.0, True),
        (ASKED_US - 1, 15.0, False),
        (ENDED_US, 15.0, True),
        (ENDED_US + 1_000_001, 15.0, False),
        (ASKED_US + 1, 25.0, False),
    ],
)
def test_events_count_if_published_during_the_subscription(subscriber, published_us, price, counts):
    event = Notify(0, 1, 0, 12_000_000 - published_us, LIFE, payload_of((price,), 60))
    subscriber.notify(ZONE, event)
    assert subscriber.delivered == [event] * counts
    assert subscriber.answers  # counted or not, no peer has to send it again
