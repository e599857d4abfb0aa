"""Adds events to the stream at the master: stream_publisher.py ADDRESS PORT.

Requests are pipelined; answers arrive in order. The program ends with its connection, because it is unknown
whether pending events are in the stream.
"""

import queue
import sys
import threading

import cutset_client
import redis

UNDER_WAY_MAX = 10_000

with cutset_client.connect() as session:
    master = redis.Connection(host=sys.argv[1], port=int(sys.argv[2]), socket_timeout=None)
    master.connect()
    publisher = session.publisher()
    asked = queue.Queue(UNDER_WAY_MAX)

    def hear():
        while (event := asked.get()) is not None:
            master.read_response()
            publisher.acknowledged(event)

    hearing = threading.Thread(target=hear, daemon=True)
    hearing.start()
    session.ready()
    for event in publisher:
        publisher.sent(event)
        asked.put(event)
        master.send_command("XADD", "events", "*", "topic", event.topic, "payload", event.payload)
    asked.put(None)
    hearing.join()
