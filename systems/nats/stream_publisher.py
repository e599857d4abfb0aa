"""Publishes into the stream at the server of its region: stream_publisher.py ADDRESS PATIENCE.

An event without an answer is republished; the stream identifies it by its id, and stores it once.
"""

import asyncio
import sys

import cutset_client
import nats
from nats.errors import Error

UNDER_WAY_MAX = 4_000


async def main():
    with cutset_client.connect() as session:
        network = await nats.connect(sys.argv[1], max_reconnect_attempts=-1)
        stream = network.jetstream()
        publisher = session.publisher()
        room = asyncio.Semaphore(UNDER_WAY_MAX)
        tasks = set()

        async def publish(event):
            name = {"Nats-Msg-Id": f"{event.stream}-{event.seq}"}
            while True:
                try:
                    await stream.publish(
                        f"events.{event.topic}", event.payload, float(sys.argv[2]), headers=name
                    )
                    break
                except Error:
                    await asyncio.sleep(0.1)
            publisher.acknowledged(event)
            room.release()

        session.ready()
        while (event := await asyncio.to_thread(publisher.next)) is not None:
            await room.acquire()
            publisher.sent(event)
            tasks.add(task := asyncio.create_task(publish(event)))
            task.add_done_callback(tasks.discard)
        await asyncio.to_thread(session.wait_until_finished)


asyncio.run(main())
