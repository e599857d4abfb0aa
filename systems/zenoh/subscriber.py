"""Subscribes to everything at the router of its region: subscriber.py CONFIGURATION."""

import sys

import cutset_client
import zenoh

with zenoh.open(zenoh.Config.from_file(sys.argv[1])) as network, cutset_client.connect() as session:
    subscriber = session.subscriber()
    network.declare_subscriber("**", lambda it: subscriber.got(it.payload.to_bytes(), str(it.key_expr)))
    session.ready()
