"""subscriber.py ADDRESS PORT EXCHANGE KIND [REPLICAS]: consumes all events from its own durable queue.

KIND: of its queue, classic or quorum. REPLICAS: of a quorum queue. It acknowledges all events of a read at
once.
"""

import sys
import threading
import time

import cutset_client
import pika

PREFETCH = 1000
CONNECT_AGAIN_S = 0.5
address, port, exchange, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
arguments = {"x-queue-type": kind}
if kind == "quorum":
    arguments["x-quorum-initial-group-size"] = int(sys.argv[5])
has_queue = threading.Event()


def take(session, subscriber):
    with pika.BlockingConnection(pika.ConnectionParameters(address, port)) as connection:
        channel = connection.channel()
        if not has_queue.is_set():  # events for an earlier generation of this process are not for this one
            channel.queue_delete(session.name)
        channel.queue_declare(session.name, durable=True, arguments=arguments)
        has_queue.set()
        channel.queue_bind(session.name, exchange, "#")
        channel.basic_qos(prefetch_count=PREFETCH)
        last = 0

        def got(channel, method, properties, payload):
            nonlocal last
            subscriber.got(payload, method.routing_key)
            last = method.delivery_tag

        channel.basic_consume(session.name, got)
        session.ready()
        while channel.consumer_tags:
            connection.process_data_events(time_limit=None)
            if last:
                channel.basic_ack(last, multiple=True)
                last = 0


def take_all(session, subscriber):
    while True:
        try:
            take(session, subscriber)
        except (pika.exceptions.AMQPError, OSError) as error:
            print(f"connection ended: {error!r}", flush=True)
        time.sleep(CONNECT_AGAIN_S)


with cutset_client.connect() as session:
    threading.Thread(target=take_all, args=(session, session.subscriber()), daemon=True).start()
