"""Connects to all publishers: subscriber.py PUBLISHERS PORT RETRY_US."""

import asyncio
import sys

import cutset_client
import iroh
from endpoint import ALPN, LENGTH, endpoint, key_of

publishers, port, retry_s = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]) / 1_000_000


async def receive(local, address, subscriber, connected):
    key = iroh.SecretKey.from_bytes(key_of(address))
    publisher = iroh.EndpointAddr(key.public(), None, [f"{address}:{port}"])
    while True:
        try:
            connection = await local.connect(publisher, ALPN)
            stream = await connection.accept_uni()
            while True:
                length = int.from_bytes(await stream.read_exact(LENGTH))
                if length:
                    subscriber.got(await stream.read_exact(length))
                else:
                    connected.set()
        except iroh.IrohError as error:
            print("connection to", address, "ended:", error.message(), flush=True)
            await asyncio.sleep(retry_s)


async def main(session):
    subscriber, local = session.subscriber(), await endpoint()
    connected = {address: asyncio.Event() for address in publishers}
    receiving = [
        asyncio.create_task(receive(local, *each, subscriber, event)) for *each, event in connected.items()
    ]
    for event in connected.values():
        await event.wait()
    session.ready()
    await asyncio.to_thread(session.wait_until_finished)
    for each in receiving:
        each.cancel()


with cutset_client.connect() as session_of_run:
    asyncio.run(main(session_of_run))
