"""client.py publish|subscribe|relay ADDRESS PORT TTL GROUP [BUNDLE]: a relay joins the group and forwards its
datagrams to the group with the next higher address. A publisher sends BUNDLE datagrams at once (UDP_SEGMENT).
"""

import socket
import struct
import sys

import cutset_client

UDP_SEGMENT = 103  # linux/udp.h
role, address, port, ttl, group = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]


def sender():
    box = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    box.bind((address, 0))
    box.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
    return box


def member():
    box = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    box.bind((group, port))
    box.setsockopt(
        socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton(address)
    )
    return box


def publish(publisher, box):
    size, waiting = int(sys.argv[6]) if len(sys.argv) > 6 else 1, []
    for event in publisher:
        waiting.append(event)
        if len(waiting) < size:
            continue
        for each in waiting:
            publisher.sent(each)
        if size > 1:
            box.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, len(event.payload))
        box.sendto(b"".join(each.payload for each in waiting), (group, port))
        waiting.clear()


def subscribe(subscriber, box):
    while True:
        subscriber.got(box.recv(65535))


def relay():
    came, leaving = member(), sender()
    target = socket.inet_ntoa(struct.pack(">I", struct.unpack(">I", socket.inet_aton(group))[0] + 1))
    while True:
        leaving.sendto(came.recv(65535), (target, port))


if role == "relay":
    relay()
with cutset_client.connect() as session:
    client, box = (session.publisher(), sender()) if role == "publish" else (session.subscriber(), member())
    session.ready()
    (publish if role == "publish" else subscribe)(client, box)
