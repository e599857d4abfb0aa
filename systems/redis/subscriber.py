"""Subscribes to everything at the master of its region: subscriber.py ADDRESS PORT."""

import sys
import threading
import time

import cutset_client
import redis


def listen(session, subscriber):
    while True:
        try:
            network = redis.Redis(sys.argv[1], int(sys.argv[2])).pubsub(ignore_subscribe_messages=False)
            network.psubscribe("*")
            for message in network.listen():
                if message["type"] == "psubscribe":
                    session.ready()
                else:
                    subscriber.got(message["data"], message["channel"].decode())
        except redis.RedisError:
            time.sleep(0.2)


with cutset_client.connect() as session:
    threading.Thread(target=listen, args=(session, session.subscriber()), daemon=True).start()
