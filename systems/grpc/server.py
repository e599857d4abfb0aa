"""Passes events on: server.py SETTINGS ADDRESS OTHERS.

Events of the region's publishers go to its subscribers and to the servers of other regions; events from these
go only to its subscribers.
"""

import contextlib
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
from channel import SERVICE, messages, options, settings

CALLS_MAX = 200
"""Calls at once: each has a thread."""
streams = {b"subscriber": [], b"server": []}
"""Queues of messages, by receiver."""


def pass_on(message, *receivers):
    for receiver in receivers:
        for waiting in list(streams[receiver]):
            with contextlib.suppress(queue.Full):  # if a stream does not move, it loses messages
                waiting.put_nowait(message)


def publish(events, context):
    for message in events:
        pass_on(message, b"subscriber", b"server")
    return b""


def subscribe(receiver, context):
    waiting = queue.Queue(settings["queued_messages"])
    streams[receiver].append(waiting)
    context.add_callback(lambda: waiting.put(None) if waiting.empty() else None)
    context.send_initial_metadata(())
    try:
        while context.is_active() and (message := waiting.get()) is not None:
            yield message
    finally:
        streams[receiver].remove(waiting)
        print("stream of a", receiver.decode(), "ended:", context.peer(), flush=True)


def linked(address):
    links.add(address)
    print("linked:", len(links), "of", len(others), flush=True)


def link(address):
    while True:
        for message in messages(address, b"server", lambda: linked(address)):
            pass_on(message, b"subscriber")
        links.discard(address)
        time.sleep(settings["retry_s"])


others, links = [each for each in sys.argv[3].split(",") if each], set()
server = grpc.server(ThreadPoolExecutor(CALLS_MAX), options=options(settings["servers_keepalive_ms"]))
handlers = {
    "Publish": grpc.stream_unary_rpc_method_handler(publish),
    "Subscribe": grpc.unary_stream_rpc_method_handler(subscribe),
}
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
server.add_insecure_port(f"{sys.argv[2]}:{settings['port']}")
server.start()
print("linked:", 0, "of", len(others), flush=True)
for other in others:
    threading.Thread(target=link, args=[other], daemon=True).start()
server.wait_for_termination()
