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
        ...subscribe, so that subscriber.got(payload) is called for each payload that comes...
        session.ready()

Needs the standard library alone. Cutset tells it by the environment what it is (CUTSET_CLIENT): `session`.
Two files are those of Cutset's own nodes: `deliveries` and `marker`.
"""

from cutset_client.publisher import Event, Publisher
from cutset_client.session import NotInARunError, Session, connect
from cutset_client.subscriber import Subscriber

__all__ = ["Event", "NotInARunError", "Publisher", "Session", "Subscriber", "connect"]
