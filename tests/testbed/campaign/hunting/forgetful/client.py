"""client.py publish|subscribe ADDRESS PORT: a line for each event; an unanswered event is repeated."""

import socket
import sys
import time

import cutset_client


def connected():
    while True:
        try:
            made = socket.create_connection((sys.argv[2], int(sys.argv[3])), timeout=2)
            made.settimeout(None)
            made.sendall(sys.argv[1].encode() + b"\n")
            return made.makefile("rwb")
        except OSError:
            time.sleep(0.05)


def publish(session):
    events, server = session.publisher(), connected()
    session.ready()
    for event in events:
        events.sent(event)
        while True:
            try:
                server.write(event.payload.hex().encode() + b"\n")
                server.flush()
                if server.readline().endswith(b"\n"):
                    break
            except OSError:
                pass
            server = connected()
        events.acknowledged(event)


def subscribe(session):
    got, server = session.subscriber(), connected()
    session.ready()
    while True:
        try:
            for line in server:
                got.got(bytes.fromhex(line.decode()))
        except OSError:
            pass
        server = connected()


with cutset_client.connect() as session:
    (publish if sys.argv[1] == "publish" else subscribe)(session)
