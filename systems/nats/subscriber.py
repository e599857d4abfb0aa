"""Subscribes at the server of its region, to everything or to its topics: subscriber.py ADDRESS."""

import asyncio
import sys

import cutset_client
import nats


async def heard(network):
    """Wait until the server has read all requests."""
    while True:
        try:
            await network.flush()
        except (nats.errors.Error, TimeoutError):
            await asyncio.sleep(0.1)  # disconnected; a new connection repeats the subscriptions
        else:
            return


async def main():
    with cutset_client.connect() as session:
        network = await nats.connect(sys.argv[1], max_reconnect_attempts=-1)
        subscriber = session.subscriber()

        async def got(message):
            subscriber.got(message.data, message.subject)

        subjects = [">"] if subscriber.is_for_everything else subscriber.topics
        subscriptions = {subject: await network.subscribe(subject, cb=got) for subject in subjects}
        await heard(network)
        session.ready()
        while (change := await asyncio.to_thread(subscriber.next)) is not None:
            if change.on:
                subscriptions[change.topic] = await network.subscribe(change.topic, cb=got)
                await heard(network)
                subscriber.subscribed(change.topic)
            else:
                await subscriptions.pop(change.topic).unsubscribe()
                await heard(network)
                subscriber.unsubscribed(change.topic)


asyncio.run(main())
