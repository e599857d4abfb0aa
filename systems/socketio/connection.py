"""Connections of clients, and of servers to each other, with this system's settings."""

import asyncio
import json
import sys
from pathlib import Path

import socketio

settings = json.loads(Path(sys.argv[1]).read_text())


async def connect(address, role, got=None):
    """Return a connection that is made again if it ends. got: called with each event's topic and payload."""
    client = socketio.AsyncClient(
        reconnection_delay=settings["reconnect_s"],
        reconnection_delay_max=settings["reconnect_max_s"],
        randomization_factor=0,
    )
    client.on("disconnect", lambda reason: print("connection to", address, "ended:", reason, flush=True))
    if got is not None:
        client.on("event", got)
    while not client.connected:
        try:
            await client.connect(f"http://{address}:{settings['port']}", auth=role)
        except socketio.exceptions.ConnectionError:
            await asyncio.sleep(settings["reconnect_s"])
    return client
