"""Reads the stream by a durable consumer, at the server of its region: stream_subscriber.py ADDRESS PATIENCE.

Events that are not acknowledged within the patience are redelivered. nats-py's ordered consumers, which need
no acknowledgements, were tried: one skipped an event when it restarted behind a cut.
"""

import asyncio
import sys

import cutset_client
import nats
from nats.js.api import ConsumerConfig, DeliverPolicy

UNACKNOWLEDGED_MAX = 10_000


async def main():
    with cutset_client.connect() as session:
        network = await nats.connect(sys.argv[1], max_reconnect_attempts=-1)
        subscriber = session.subscriber()

        async def got(message):
            subscriber.got(message.data, message.subject)
            await message.ack()

        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.NEW, ack_wait=float(sys.argv[2]), max_ack_pending=UNACKNOWLEDGED_MAX
        )
        durable = session.name.replace("/", "-")
        await network.jetstream().subscribe(
            "events.>", durable=durable, cb=got, manual_ack=True, config=config
        )
        session.ready()
        await asyncio.to_thread(session.wait_until_finished)


asyncio.run(main())
