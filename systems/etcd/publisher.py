"""publisher.py ADDRESS PORT SECONDS: puts events at the member of its region, in batches.

A batch is one transaction, and only one is pending at a time, which keeps the order. A transaction without an
answer may have been executed: it is retried, and puts nothing if its first key exists.
"""

import http.client
import queue
import sys
import threading
import time

import cutset_client
from gateway import Gateway, text

OPERATIONS_MAX = 128  # of a transaction, by default
waiting = queue.Queue()


def put(events):
    keys = [text(f"{event.topic}/{event.stream}/{event.seq:012}".encode()) for event in events]
    puts = [
        {"requestPut": {"key": key, "value": text(event.payload)}}
        for key, event in zip(keys, events, strict=True)
    ]
    is_new = {"key": keys[0], "target": "VERSION", "result": "EQUAL", "version": "0"}
    network.open("kv/txn", {"compare": [is_new], "success": puts}).read()


def put_all():
    while True:
        events = [waiting.get()]
        while len(events) < OPERATIONS_MAX and not waiting.empty():
            events.append(waiting.get())
        while True:
            try:
                put(events)
                break
            except (OSError, http.client.HTTPException) as error:
                print(f"again from {events[0].topic} {events[0].seq}: {error}", flush=True)
                time.sleep(0.1)
        for event in events:
            publisher.acknowledged(event)


with cutset_client.connect() as session:
    publisher = session.publisher()
    network = Gateway(sys.argv[1], sys.argv[2], timeout_s=float(sys.argv[3]))
    threading.Thread(target=put_all, daemon=True).start()
    session.ready()
    for event in publisher:
        publisher.sent(event)
        waiting.put(event)
