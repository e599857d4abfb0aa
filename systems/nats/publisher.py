"""Publishes at the server of its region: publisher.py ADDRESS."""

import asyncio
import sys

import cutset_client
import nats


async def main():
    with cutset_client.connect() as session:
        network = await nats.connect(sys.argv[1], max_reconnect_attempts=-1)
        publisher = session.publisher()
        session.ready()
        while (event := await asyncio.to_thread(publisher.next)) is not None:
            publisher.sent(event)
            await network.publish(event.topic, event.payload)
        await asyncio.to_thread(session.wait_until_finished)


asyncio.run(main())
