"""Subscribes at the proxy of its region, to everything or to its topics: subscriber.py ADDRESS."""

import sys

import cutset_client
import zmq

WAIT_MS = 20  # time to wait for messages between checks for changed topics: one thread uses the socket
EVERYTHING, NO_TOPIC = b"", b"nobody's/"


def prefix_of(topic):
    """Return the prefix of a topic's messages, which no other topic has."""
    return topic.encode() + b"/"


def take(begins, payload):
    topic = begins.decode().removesuffix("/")
    if payload:
        subscriber.got(payload, topic)
        return
    subscriber_lacks.discard(begins)  # the proxy confirms this subscription
    if not subscriber_lacks:
        session.ready()
    if begins not in {EVERYTHING, NO_TOPIC}:
        subscriber.subscribed(topic)


with cutset_client.connect() as session:
    subscriber = session.subscriber()
    network = zmq.Context.instance().socket(zmq.SUB)
    first = (
        {EVERYTHING} if subscriber.is_for_everything else {prefix_of(topic) for topic in subscriber.topics}
    )
    subscriber_lacks = first or {NO_TOPIC}
    for prefix in subscriber_lacks:
        network.subscribe(prefix)
    network.connect(sys.argv[1])
    while not session.wait_until_finished(0):
        while (change := subscriber.next(0)) is not None:
            if change.on:
                network.subscribe(prefix_of(change.topic))
            else:
                network.unsubscribe(prefix_of(change.topic))  # no message with this prefix arrives after this
                subscriber.unsubscribed(change.topic)
        if network.poll(WAIT_MS):
            take(*network.recv_multipart())
