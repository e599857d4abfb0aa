"""broker.py ADDRESS PORT PEERS: forwards lines to its subscribers and to other brokers."""

import asyncio
import ssl
import sys
from pathlib import Path

CERTIFICATE = Path(__file__).parent / "certificate.pem"
address, port, peers = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(",")
subscribers, links = set(), {}
serving, asking = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
serving.load_cert_chain(CERTIFICATE)
asking.load_verify_locations(CERTIFICATE)
asking.check_hostname = False  # hosts go by their addresses


async def serve(reader, writer):
    kind = (await reader.readline()).strip()
    if kind == b"subscribe":
        subscribers.add(writer)
    try:
        while line := await reader.readline():
            for other in [*subscribers, *(links.values() if kind == b"publish" else ())]:
                if not other.is_closing():  # asyncio's TLS raises then
                    other.write(line)
    finally:
        subscribers.discard(writer)


async def link(peer):
    while True:
        try:
            reader, links[peer] = await asyncio.open_connection(peer, port, ssl=asking, server_hostname=peer)
            links[peer].write(b"broker\n")
            await reader.read()
        except OSError:
            await asyncio.sleep(0.2)
        links.pop(peer, None)


async def main():
    server = await asyncio.start_server(serve, address, port, ssl=serving)
    await asyncio.gather(server.serve_forever(), *map(link, filter(None, peers)))


asyncio.run(main())
