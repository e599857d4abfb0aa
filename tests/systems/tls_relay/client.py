"""client.py publish|subscribe ADDRESS PORT: lines of a topic and a payload in hexadecimal digits."""

import socket
import ssl
import sys
import time
from pathlib import Path

import cutset_client

CERTIFICATE = Path(__file__).parent / "certificate.pem"


def connected(address, port):
    context = ssl.create_default_context(cafile=CERTIFICATE)  # it logs keys where SSLKEYLOGFILE says
    context.check_hostname = False  # hosts go by their addresses
    while True:
        try:
            return context.wrap_socket(socket.create_connection((address, port), timeout=2))
        except OSError:
            time.sleep(0.1)


with cutset_client.connect() as session:
    is_publisher = sys.argv[1] == "publish"
    client = session.publisher() if is_publisher else session.subscriber()
    broker = connected(sys.argv[2], int(sys.argv[3]))
    broker.settimeout(None)
    broker.sendall(sys.argv[1].encode() + b"\n")
    session.ready()
    for event in client if is_publisher else ():
        client.sent(event)
        broker.sendall(f"{event.topic} {event.payload.hex()}\n".encode())
    for line in () if is_publisher else broker.makefile():
        topic, payload = line.split()
        client.got(bytes.fromhex(payload), topic)
