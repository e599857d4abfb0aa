"""Takes every event as a client of its region: subscriber.py SPECIFICATION, a file of JSON."""

import asyncio
import json
import sys
from pathlib import Path

import cutset_client

from node.core.specification import NodeSpec
from node.tcp.client import connect
from node.tcp.process import new_event_loop

LOOKS_EVERY_S = 0.1


async def take(client, subscriber):
    while True:
        event = await client.get_event()
        if event.data:  # a tombstone has none
            subscriber.got(event.data)


async def subscribe(session, spec):
    subscriber = session.subscriber()
    async with connect(spec) as client, asyncio.TaskGroup() as tasks:
        taking = tasks.create_task(take(client, subscriber))
        session.ready()
        while not session.wait_until_finished(0):
            await asyncio.sleep(LOOKS_EVERY_S)
        taking.cancel()


given = json.loads(Path(sys.argv[1]).read_text())
with cutset_client.connect() as session, asyncio.Runner(loop_factory=new_event_loop) as runner:
    runner.run(subscribe(session, NodeSpec.from_json(given)))
