"""Publishes at the router of its region: publisher.py CONFIGURATION."""

import sys

import cutset_client
import zenoh

with cutset_client.connect() as session, zenoh.open(zenoh.Config.from_file(sys.argv[1])) as network:
    publisher = session.publisher()
    session.ready()
    for event in publisher:
        publisher.sent(event)
        network.put(event.topic, event.payload, congestion_control=zenoh.CongestionControl.BLOCK)
