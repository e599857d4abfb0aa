"""Passes events on: server.py SETTINGS ADDRESS OTHERS.

Events of the region's publishers go to its subscribers and to the servers of other regions; events from these
go only to its subscribers.
"""

import asyncio
import contextlib
import sys

import grpc.aio
from channel import SERVICE, messages, options, settings

streams = {b"subscriber": set(), b"server": set()}
"""Queues of messages, by who receives them."""


def pass_on(message, *receivers):
    for receiver in receivers:
        for queue in streams[receiver]:
            with contextlib.suppress(asyncio.QueueFull):  # if a stream does not move, it loses messages
                queue.put_nowait(message)


async def publish(events, context):
    async for message in events:
        pass_on(message, b"subscriber", b"server")
    return b""


async def subscribe(receiver, context):
    queue = asyncio.Queue(settings["queued_messages"])
    streams[receiver].add(queue)
    try:
        await context.send_initial_metadata(())
        while True:
            yield await queue.get()
    finally:
        streams[receiver].discard(queue)
        print("stream of a", receiver.decode(), "ended:", context.peer(), flush=True)


def linked(address):
    links.add(address)
    print("linked:", len(links), "of", len(others), flush=True)


async def link(address):
    while True:
        async for message in messages(address, b"server", lambda: linked(address)):
            pass_on(message, b"subscriber")
        links.discard(address)
        await asyncio.sleep(settings["retry_s"])


async def main():
    server = grpc.aio.server(options=options(settings["servers_keepalive_ms"]))
    handlers = {
        "Publish": grpc.stream_unary_rpc_method_handler(publish),
        "Subscribe": grpc.unary_stream_rpc_method_handler(subscribe),
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
    server.add_insecure_port(f"{sys.argv[2]}:{settings['port']}")
    await server.start()
    print("linked:", 0, "of", len(others), flush=True)
    await asyncio.gather(server.wait_for_termination(), *map(link, others))


others, links = [each for each in sys.argv[3].split(",") if each], set()
asyncio.run(main())
