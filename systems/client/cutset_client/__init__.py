"""Clients of a system under test: what to publish and when, and a record of what was published and got.

    with cutset_client.connect() as session:
        publisher = session.publisher()
        session.ready()
        for event in publisher:
            publisher.sent(event)
            ...publish event.payload under event.topic...
            publisher.acknowledged(event)

    with cutset_client.connect() as session:
        subscriber = session.subscriber()
        ...subscribe to subscriber.topics, and see that subscriber.got(payload) is called for what comes...
        session.ready()
        for change in subscriber:
            ...subscribe to change.topic, or unsubscribe from it if it is not change.on...
            subscriber.subscribed(change.topic)   # or unsubscribed(change.topic)

Needs the standard library alone. Cutset tells it by the environment what it is (CUTSET_CLIENT): `session`.
Two files are those of Cutset's own nodes: `deliveries` and `marker`.
"""

from cutset_client.publisher import Event, Publisher
from cutset_client.session import NotInARunError, Session, connect
from cutset_client.subscriber import Subscriber
from cutset_client.subscriptions import Change

__all__ = ["Change", "Event", "NotInARunError", "Publisher", "Session", "Subscriber", "connect"]
