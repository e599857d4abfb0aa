"""Publishes or subscribes at the server of its region: client.py SETTINGS publisher|subscriber ADDRESS."""

import asyncio
import sys

import cutset_client
import socketio
from connection import connect


async def main(session):
    role, address = sys.argv[2:]
    if role == "subscriber":
        subscriber = session.subscriber()
        network = await connect(address, role, lambda topic, payload: subscriber.got(payload, topic))
        session.ready()
    else:
        publisher, network = session.publisher(), await connect(address, role)
        session.ready()
        while (event := await asyncio.to_thread(publisher.next)) is not None:
            publisher.sent(event)
            try:
                await network.emit("event", (event.topic, event.payload))
            except socketio.exceptions.BadNamespaceError:
                print("event dropped: not connected", flush=True)
    await asyncio.to_thread(session.wait_until_finished)
    await network.disconnect()


with cutset_client.connect() as connected:
    asyncio.run(main(connected))
