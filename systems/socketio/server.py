"""Passes events on: server.py SETTINGS ADDRESS OTHERS.

Events of the region's publishers go to its subscribers and to the servers of other regions; events from these
go only to its subscribers.
"""

import asyncio
import sys

import socketio
from aiohttp import web
from connection import connect, settings

server = socketio.AsyncServer(
    async_mode="aiohttp", ping_interval=settings["ping_interval_s"], ping_timeout=settings["ping_timeout_s"]
)


@server.on("connect")
async def admit(client, environment, role):
    await server.enter_room(client, role)


@server.on("disconnect")
def leave(client, reason):
    print("a client ended:", reason, flush=True)


@server.on("event")
async def publish(client, topic, payload):
    await server.emit("event", (topic, payload), room=["subscriber", "server"])


async def pass_on(topic, payload):
    await server.emit("event", (topic, payload), room="subscriber")


async def main():
    application = web.Application()
    server.attach(application)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, sys.argv[2], settings["port"]).start()
    others = [each for each in sys.argv[3].split(",") if each]
    print("linked:", 0, "of", len(others), flush=True)
    connecting = [connect(each, "server", pass_on) for each in others]
    for number, link in enumerate(asyncio.as_completed(connecting), 1):
        links.append(await link)
        print("linked:", number, "of", len(others), flush=True)
    await asyncio.Event().wait()


links = []
asyncio.run(main())
