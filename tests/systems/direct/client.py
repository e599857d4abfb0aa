"""client.py publish|subscribe ADDRESS PORT PUBLISHERS: publishers send datagrams to subscribers themselves.

A publisher forgets the subscribers of other networks in the middle of the run, like a server without
acknowledgements for too long.
"""

import contextlib
import socket
import sys
import threading

import cutset_client

role, address, port, publishers = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4].split(",")
FORGETS_AT = 60
box = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
subscribers = set()


def admit():
    while True:
        _, asker = box.recvfrom(100)
        subscribers.add(asker)
        box.sendto(b"OK", asker)


def publish(session):
    publisher = session.publisher()
    box.bind((address, port))
    threading.Thread(target=admit, daemon=True).start()
    session.ready()
    network = address.rsplit(".", 1)[0] + "."
    for number, event in enumerate(publisher):
        publisher.sent(event)
        for subscriber in list(subscribers):
            if number < FORGETS_AT or subscriber[0].startswith(network):
                box.sendto(event.payload, subscriber)


def subscribe(session):
    subscriber = session.subscriber()
    box.settimeout(0.2)
    for publisher in publishers:
        answer = b""
        while answer != b"OK":
            box.sendto(b"S", (publisher, port))
            with contextlib.suppress(TimeoutError):
                answer = box.recv(65535)
    box.settimeout(None)
    session.ready()
    while True:
        data = box.recv(65535)
        if data != b"OK":
            subscriber.got(data)


with cutset_client.connect() as connected:
    (publish if role == "publish" else subscribe)(connected)
