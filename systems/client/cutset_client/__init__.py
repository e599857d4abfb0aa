"""Clients of a system under test: events to publish, and a record of published and received events.

    with cutset_client.connect() as session:
        publisher = session.publisher()
        session.ready()
        for event in publisher:
            publisher.sent(event)
            ...publish event.payload under event.topic...
            publisher.acknowledged(event)

    with cutset_client.connect() as session:
        subscriber = session.subscriber()
        ...subscribe to subscriber.topics, and call subscriber.got(payload) for each received payload...
        session.ready()
        for change in subscriber:
            ...subscribe to change.topic, or unsubscribe from it if change.on is false...
            subscriber.subscribed(change.topic)   # or unsubscribed(change.topic)

It needs only the standard library. Cutset configures it by an environment variable (CUTSET_CLIENT, see
`session`). It shares two files with Cutset's own nodes: `deliveries` and `marker`.
"""

from cutset_client.publisher import Event, Publisher
from cutset_client.session import NotInARunError, Session, connect
from cutset_client.subscriber import Subscriber
from cutset_client.subscriptions import Change

__all__ = ["Change", "Event", "NotInARunError", "Publisher", "Session", "Subscriber", "connect"]
