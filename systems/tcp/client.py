"""client.py publish|subscribe ADDRESS PORT PUBLISHERS: publishers send their events on every connection."""

import queue
import socket
import sys
import threading
import time

import cutset_client

LENGTH = 4
RETRY_S = 0.2  # before the first connection, which the publisher may not expect yet
role, address, port, publishers = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4].split(",")
queues = []


def serve(connection, events):
    while True:
        payload = events.get()
        connection.sendall(len(payload).to_bytes(LENGTH, "big") + payload)


def accept(listening):
    while True:
        connection, _ = listening.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        queues.append(queue.SimpleQueue())
        threading.Thread(target=serve, args=(connection, queues[-1]), daemon=True).start()
        queues[-1].put(b"")  # tells the subscriber that it gets all events from now on


def publish(session):
    publisher = session.publisher()
    listening = socket.create_server((address, port))
    threading.Thread(target=accept, args=(listening,), daemon=True).start()
    session.ready()
    for event in publisher:
        publisher.sent(event)
        for events in queues:
            events.put(event.payload)


def connect(publisher):
    while True:
        try:
            return socket.create_connection((publisher, port))
        except OSError:
            time.sleep(RETRY_S)


def receive(publisher, subscriber, connected):
    with connect(publisher).makefile("rb") as events:
        while length := events.read(LENGTH):
            if payload := events.read(int.from_bytes(length, "big")):
                subscriber.got(payload)
            else:
                connected.release()


def subscribe(session):
    subscriber, connected = session.subscriber(), threading.Semaphore(0)
    for publisher in publishers:
        threading.Thread(target=receive, args=(publisher, subscriber, connected), daemon=True).start()
    for _ in publishers:
        connected.acquire()
    session.ready()
    session.wait_until_finished()


with cutset_client.connect() as begun:
    (publish if role == "publish" else subscribe)(begun)
