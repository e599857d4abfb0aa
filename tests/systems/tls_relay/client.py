"""client.py MINOR_VERSION publish|subscribe ADDRESS PORT: lines of a topic and a payload as hexadecimal."""

import socket
import ssl
import sys
import time
from pathlib import Path

import cutset_client

CERTIFICATE = Path(__file__).parent / "certificate.pem"


def context(version):
    """As Python's defaults are, it logs keys where SSLKEYLOGFILE says."""
    made = ssl.create_default_context(cafile=CERTIFICATE)
    made.check_hostname = False  # hosts go by their addresses
    made.maximum_version = ssl.TLSVersion[f"TLSv1_{version}"]
    return made


def connected(version, address, port):
    while True:
        try:
            return context(version).wrap_socket(socket.create_connection((address, port), timeout=2))
        except OSError:
            time.sleep(0.1)


with cutset_client.connect() as session:
    is_publisher = sys.argv[2] == "publish"
    client = session.publisher() if is_publisher else session.subscriber()
    broker = connected(sys.argv[1], sys.argv[3], int(sys.argv[4]))
    broker.settimeout(None)
    broker.sendall(sys.argv[2].encode() + b"\n")
    session.ready()
    for event in client if is_publisher else ():
        client.sent(event)
        broker.sendall(f"{event.topic} {event.payload.hex()}\n".encode())
    for line in () if is_publisher else broker.makefile():
        topic, payload = line.split()
        client.got(bytes.fromhex(payload), topic)
