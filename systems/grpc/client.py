"""Publishes or subscribes at the server of its region: client.py SETTINGS publisher|subscriber ADDRESS."""

import asyncio
import sys

import cutset_client
import grpc.aio
from channel import SERVICE, channel, messages, settings


async def publish(session, address):
    publisher = session.publisher()
    async with channel(address) as network:
        await network.channel_ready()
        session.ready()
        while True:
            call = network.stream_unary(f"/{SERVICE}/Publish")(wait_for_ready=True)
            try:
                while (event := await asyncio.to_thread(publisher.next)) is not None:
                    publisher.sent(event)
                    await call.write(f"{event.topic} ".encode() + event.payload)
                await call.done_writing()
                return await call
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await asyncio.sleep(settings["retry_s"])


async def subscribe(session, address):
    subscriber = session.subscriber()
    while True:
        async for message in messages(address, b"subscriber", session.ready):
            topic, _, payload = message.partition(b" ")
            subscriber.got(payload, topic.decode())
        await asyncio.sleep(settings["retry_s"])


async def main(session):
    work = asyncio.create_task((publish if sys.argv[2] == "publisher" else subscribe)(session, sys.argv[3]))
    finished = asyncio.create_task(asyncio.to_thread(session.wait_until_finished))
    await asyncio.wait([work, finished], return_when=asyncio.FIRST_COMPLETED)
    work.cancel()


with cutset_client.connect() as connected:
    asyncio.run(main(connected))
