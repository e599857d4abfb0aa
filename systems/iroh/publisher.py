"""Sends its events to everyone who connects: publisher.py ADDRESS PORT QUEUED_MESSAGES."""

import asyncio
import contextlib
import sys

import cutset_client
import iroh
from endpoint import LENGTH, endpoint, key_of

address, port, queued_messages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
queues = set()


async def serve(incoming):
    queue = asyncio.Queue(queued_messages)
    queue.put_nowait(b"")  # opens the stream
    try:
        connection = await (await incoming.accept()).connect()
        stream = await connection.open_uni()
        queues.add(queue)
        while True:
            payload = await queue.get()
            await stream.write_all(len(payload).to_bytes(LENGTH) + payload)
    except iroh.IrohError as error:
        print("connection ended:", error.message(), flush=True)
    finally:
        queues.discard(queue)


async def accept(local):
    async with asyncio.TaskGroup() as connections:
        while (incoming := await local.accept_next()) is not None:
            connections.create_task(serve(incoming))


async def main(session):
    local = await endpoint(bind_addr=f"{address}:{port}", secret_key=key_of(address))
    accepting = asyncio.create_task(accept(local))
    publisher = session.publisher()
    session.ready()
    while (event := await asyncio.to_thread(publisher.next)) is not None:
        publisher.sent(event)
        for queue in queues:
            with contextlib.suppress(asyncio.QueueFull):  # if a connection does not move, it loses events
                queue.put_nowait(event.payload)
    await asyncio.to_thread(session.wait_until_finished)
    accepting.cancel()


with cutset_client.connect() as connected:
    asyncio.run(main(connected))
