"""joined.py ADDRESS PORT EXCHANGE PEERS: exits with code 0 when messages from all peers arrive here.

It declares nothing before all peers accept connections: while a node joins a cluster, Mnesia tries each
declaration again and again, and the join takes longer.
"""

import sys
import time
from contextlib import ExitStack

import pika

PATIENCE_S = 2.0
AGAIN_S = 0.5
address, port, exchange, peers = sys.argv[1], int(sys.argv[2]), sys.argv[3], set(sys.argv[4].split())
key = f"probe.{address}"  # has two words, events' keys have one, so that no subscriber receives it


def came():
    """Probe all peers; returns those whose probe arrived in time. Raises AMQPError or OSError."""
    with ExitStack() as stack:
        connections = {
            each: stack.enter_context(pika.BlockingConnection(pika.ConnectionParameters(each, port)))
            for each in (*peers, address)
        }
        channel = connections[address].channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, exchange, key)
        for peer in peers:
            connections[peer].channel().basic_publish(exchange, key, peer.encode())
        found, until_s = set(), time.monotonic() + PATIENCE_S
        for method, _, payload in channel.consume(queue, auto_ack=True, inactivity_timeout=PATIENCE_S):
            if method is not None:
                found.add(payload.decode())
            if found == peers or time.monotonic() > until_s:
                break
        return found


while peers:
    try:
        if came() == peers:
            break
    except (pika.exceptions.AMQPError, OSError) as error:
        print(f"not yet: {error!r}", flush=True)
    time.sleep(AGAIN_S)
