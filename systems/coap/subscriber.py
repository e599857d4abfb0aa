"""Observes the events of all publishers: subscriber.py PORT PUBLISHERS."""

import asyncio
import sys

import aiocoap
import cutset_client

port, publishers = sys.argv[1], sys.argv[2].split(",")


async def observe(network, publisher, subscriber, registered):
    while True:
        request = network.request(
            aiocoap.Message(code=aiocoap.GET, uri=f"coap://{publisher}:{port}/events", observe=0)
        )
        try:
            await request.response
            registered.set()
            async for notification in request.observation:
                subscriber.got(notification.payload)
        except aiocoap.error.Error as error:
            print("observation of", publisher, "ended:", type(error).__name__, flush=True)
            await asyncio.sleep(1)


async def main(session):
    subscriber = session.subscriber()
    network = await aiocoap.Context.create_client_context()
    registered = {publisher: asyncio.Event() for publisher in publishers}
    observations = [
        asyncio.create_task(observe(network, publisher, subscriber, event))
        for publisher, event in registered.items()
    ]
    for event in registered.values():
        await event.wait()
    session.ready()
    await asyncio.to_thread(session.wait_until_finished)
    for each in observations:
        each.cancel()


with cutset_client.connect() as connected:
    asyncio.run(main(connected))
