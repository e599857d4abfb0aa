"""server.py ADDRESS PORT: answers each line at once, and forwards it half a second later."""

import asyncio
import sys

subscribers = set()


async def pass_on(line):
    await asyncio.sleep(0.5)  # what is on its way now is nowhere else
    for each in subscribers:
        each.write(line)


async def serve(reader, writer):
    kind, under_way = (await reader.readline()).strip(), set()
    if kind == b"subscribe":
        subscribers.add(writer)
    try:
        while line := await reader.readline():
            writer.write(line)
            under_way.add(asyncio.create_task(pass_on(line)))
    except ConnectionError:
        pass
    finally:
        subscribers.discard(writer)


async def main():
    server = await asyncio.start_server(serve, sys.argv[1], int(sys.argv[2]))
    await server.serve_forever()


asyncio.run(main())
