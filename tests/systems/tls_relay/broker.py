"""broker.py VERSION ADDRESS PORT PEERS: passes lines on to subscribers here, and to the brokers of other regions."""

import asyncio
import sys

from secure import context

version, address, port, peers = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4].split(",")
subscribers, links = set(), {}


async def serve(reader, writer):
    kind = (await reader.readline()).strip()
    if kind == b"subscribe":
        subscribers.add(writer)
    while line := await reader.readline():
        for other in [*subscribers, *(links.values() if kind == b"publish" else ())]:
            other.write(line)
    subscribers.discard(writer)


async def link(peer):
    while True:
        try:
            reader, links[peer] = await asyncio.open_connection(
                peer, port, ssl=context(version, is_server=False), server_hostname=peer
            )
            links[peer].write(b"broker\n")
            await reader.read()
        except OSError:
            await asyncio.sleep(0.2)
        links.pop(peer, None)


async def main():
    server = await asyncio.start_server(serve, address, port, ssl=context(version, is_server=True))
    await asyncio.gather(server.serve_forever(), *map(link, filter(None, peers)))


asyncio.run(main())
