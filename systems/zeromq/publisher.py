"""Publishes at the proxy of its region: publisher.py ADDRESS."""

import sys

import cutset_client
import zmq

with cutset_client.connect() as session:
    network = zmq.Context.instance().socket(zmq.XPUB)  # like PUB, but receives subscriptions
    network.connect(sys.argv[1])
    publisher = session.publisher()
    network.recv()
    session.ready()
    for event in publisher:
        publisher.sent(event)
        network.send_multipart([f"{event.topic}/".encode(), event.payload])
