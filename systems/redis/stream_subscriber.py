"""Reads the stream at the server of its region, entry after entry: stream_subscriber.py ADDRESS PORT."""

import sys
import threading
import time

import cutset_client
import redis

WAIT_MS = 1_000
ENTRIES_MAX = 1_000


def read(session, subscriber):
    network, last = redis.Redis(sys.argv[1], int(sys.argv[2])), None
    while True:
        try:
            if last is None:
                found = network.xrevrange("events", count=1)
                last = found[0][0] if found else "0"
                session.ready()
            for _, entries in network.xread({"events": last}, ENTRIES_MAX, WAIT_MS):
                for last, entry in entries:  # noqa: B007 - the position to continue from
                    subscriber.got(entry[b"payload"], entry[b"topic"].decode())
        except redis.RedisError:
            time.sleep(0.2)


with cutset_client.connect() as session:
    threading.Thread(target=read, args=(session, session.subscriber()), daemon=True).start()
