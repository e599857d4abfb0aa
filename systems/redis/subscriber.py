"""Subscribes at the master of its region, to everything or to its topics: subscriber.py ADDRESS PORT."""

import sys
import threading
import time

import cutset_client
import redis

LAST = "nobody's"  # a channel without events, subscribed to last: its confirmation implies all others


class Connection(threading.Thread):
    """The connection, which is reopened after a failure and then subscribes to all topics."""

    def __init__(self):
        super().__init__(daemon=True)
        self._changing = threading.Lock()
        self._network = None

    def run(self):
        while True:
            try:
                self._connect()
                for message in self._network.listen():
                    self._take(message)
            except redis.RedisError:
                time.sleep(0.2)

    def ask(self, change):
        with self._changing:
            try:
                (self._network.subscribe if change.on else self._network.unsubscribe)(change.topic)
            except redis.RedisError as error:
                print(f"{change}: {error}", flush=True)

    def _connect(self):
        with self._changing:
            self._network = redis.Redis(sys.argv[1], int(sys.argv[2])).pubsub(ignore_subscribe_messages=False)
            if subscriber.is_for_everything:
                self._network.psubscribe("*")
            else:
                self._network.subscribe(*subscriber.topics, LAST)

    def _take(self, message):
        channel = message["channel"].decode()
        match message["type"]:
            case "message" | "pmessage":
                subscriber.got(message["data"], channel)
            case "subscribe" if channel != LAST:
                subscriber.subscribed(channel)
            case "unsubscribe":
                subscriber.unsubscribed(channel)
            case _:
                session.ready()


with cutset_client.connect() as session:
    subscriber = session.subscriber()
    connection = Connection()
    connection.start()
    for change in subscriber:
        connection.ask(change)
