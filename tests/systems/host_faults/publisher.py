"""A publisher without subscribers."""

import cutset_client

with cutset_client.connect() as session:
    publisher = session.publisher()
    session.ready()
    for event in publisher:
        publisher.sent(event)
