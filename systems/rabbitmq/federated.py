"""federated.py ADDRESS PORT UPSTREAMS: ends with code 0 once what is published at these comes to this one."""

import sys
import time

import pika

PATIENCE_S = 2.0
address, port, upstreams = sys.argv[1], int(sys.argv[2]), sys.argv[3].split()
key = f"probe.{address}"  # of two words: those of events have one, so that no subscriber gets it

with pika.BlockingConnection(pika.ConnectionParameters(address, port)) as connection:
    channel = connection.channel()
    own = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(own, "events", key)
    for upstream in upstreams:
        with pika.BlockingConnection(pika.ConnectionParameters(upstream, port)) as other:
            other.channel().basic_publish("events", key, upstream.encode())
    found, until_s = set(), time.monotonic() + PATIENCE_S
    while found != set(upstreams) and (left_s := until_s - time.monotonic()) > 0:
        for method, _, payload in channel.consume(own, auto_ack=True, inactivity_timeout=left_s):
            if method is None:
                break
            found.add(payload.decode())
            if found == set(upstreams):
                break
sys.exit(found != set(upstreams))
