"""Subscribes to everything at the server of its region: subscriber.py ADDRESS."""

import asyncio
import sys

import cutset_client
import nats


async def main():
    with cutset_client.connect() as session:
        network = await nats.connect(sys.argv[1], max_reconnect_attempts=-1)
        subscriber = session.subscriber()

        async def got(message):
            subscriber.got(message.data, message.subject)

        await network.subscribe(">", cb=got)
        await network.flush()
        session.ready()
        await asyncio.to_thread(session.wait_until_finished)


asyncio.run(main())
