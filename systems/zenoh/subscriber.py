"""Subscribes at the router of its region, to everything or to its topics: subscriber.py CONFIGURATION."""

import sys

import cutset_client
import zenoh


def declared(key):
    return network.declare_subscriber(key, lambda it: subscriber.got(it.payload.to_bytes(), str(it.key_expr)))


with zenoh.open(zenoh.Config.from_file(sys.argv[1])) as network, cutset_client.connect() as session:
    subscriber = session.subscriber()
    keys = ["**"] if subscriber.is_for_everything else subscriber.topics
    subscriptions = {key: declared(key) for key in keys}
    session.ready()
    for change in subscriber:
        if change.on:
            subscriptions[change.topic] = declared(change.topic)
            subscriber.subscribed(change.topic)
        else:
            subscriptions.pop(change.topic).undeclare()
            subscriber.unsubscribed(change.topic)
