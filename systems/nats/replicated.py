"""Exits with code 0 when the stream has all replicas and a leader: replicated.py ADDRESS REPLICAS REGION.

The first call creates the stream. With a region, the leader steps down until that region's server leads.
"""

import asyncio
import json
import sys

import nats
from nats.errors import Error

address, replicas, region = sys.argv[1], int(sys.argv[2]), sys.argv[3]


async def main():
    network = await nats.connect(address)
    stream = network.jetstream()
    while True:
        try:
            await stream.add_stream(name="events", subjects=["events.>"], num_replicas=replicas)
            cluster = (await stream.stream_info("events")).cluster
        except Error:  # no leader of all servers yet
            await asyncio.sleep(0.2)
            continue
        members = [each.name for each in cluster.replicas or () if each.current]
        if cluster.leader and len(members) == replicas - 1:
            if not region or cluster.leader.rsplit("-", 2)[0] == region:
                break
            await network.request("$JS.API.STREAM.LEADER.STEPDOWN.events", json.dumps({}).encode())
        await asyncio.sleep(0.2)
    await network.close()


asyncio.run(main())
