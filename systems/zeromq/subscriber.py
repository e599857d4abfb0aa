"""Subscribes to everything at the proxy of its region: subscriber.py ADDRESS."""

import sys
import threading

import cutset_client
import zmq


def listen(session, subscriber):
    network = zmq.Context.instance().socket(zmq.SUB)
    network.subscribe(b"")
    network.connect(sys.argv[1])
    while True:
        topic, payload = network.recv_multipart()
        if payload:
            subscriber.got(payload, topic.decode())
        else:
            session.ready()


with cutset_client.connect() as session:
    threading.Thread(target=listen, args=(session, session.subscriber()), daemon=True).start()
