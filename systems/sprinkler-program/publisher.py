"""Publishes as a client of its region: publisher.py SPECIFICATION, a file of JSON.

Events that are due within a flush interval are published together, as in Sprinkler's own driver.
"""

import asyncio
import json
import sys
import threading
from collections import deque
from pathlib import Path

import cutset_client

from node.core.specification import NodeSpec
from node.tcp.client import connect
from node.tcp.process import new_event_loop

UNDER_WAY_MAX = 10_000  # published and not acknowledged


def gather(publisher, due, room):
    """Queue due events; runs in its own thread, because it waits for the next event."""
    for event in publisher:
        room.acquire()
        due.append(event)


async def publish_one(client, publisher, event, room):
    publisher.sent(event)
    await client.publish(event.payload)
    publisher.acknowledged(event)
    room.release()


async def take_all(client):
    """Receive all events, which the client library forwards, as in any client."""
    while True:
        await client.get_event()


async def publish(session, spec):
    publisher, due, room = session.publisher(), deque(), threading.Semaphore(UNDER_WAY_MAX)
    interval_s, now_s = spec.parameters["flush_interval_us"] / 1e6, asyncio.get_running_loop().time
    async with connect(spec) as client, asyncio.TaskGroup() as tasks:
        taking = tasks.create_task(take_all(client))
        threading.Thread(target=gather, args=(publisher, due, room), daemon=True).start()
        session.ready()
        flush_s = now_s()
        while not session.wait_until_finished(0):
            flush_s = max(flush_s + interval_s, now_s())  # on a schedule that does not drift
            await asyncio.sleep(flush_s - now_s())
            while due:
                tasks.create_task(publish_one(client, publisher, due.popleft(), room))
        taking.cancel()


given = json.loads(Path(sys.argv[1]).read_text())
with cutset_client.connect() as session, asyncio.Runner(loop_factory=new_event_loop) as runner:
    runner.run(publish(session, NodeSpec.from_json(given)))
