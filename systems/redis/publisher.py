"""Publishes at the master of its region: publisher.py ADDRESS PORT."""

import sys

import cutset_client
import redis

with cutset_client.connect() as session:
    network = redis.Redis(sys.argv[1], int(sys.argv[2]))
    publisher = session.publisher()
    session.ready()
    for event in publisher:
        publisher.sent(event)
        try:
            network.publish(event.topic, event.payload)
        except redis.RedisError:
            publisher.refused(event)
        else:
            publisher.acknowledged(event)
