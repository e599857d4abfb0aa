"""A client that is its own system: it receives what it publishes."""

import cutset_client

with cutset_client.connect() as session:
    publisher, subscriber = session.publisher(), session.subscriber()
    session.ready()
    for event in publisher:
        publisher.sent(event)
        subscriber.got(event.payload, event.topic)
        publisher.acknowledged(event)
