"""publisher.py ADDRESS PORT EXCHANGE PERSISTENT: publishes events at its region's broker until confirmed.

Unconfirmed events are republished if the broker refuses them or closes the connection.
"""

import queue
import sys
import threading

import cutset_client
import pika
from pika.adapters.select_connection import IOLoop

CONNECT_AGAIN_S = 0.5
address, port, exchange = sys.argv[1], int(sys.argv[2]), sys.argv[3]
properties = pika.BasicProperties(delivery_mode=2 if sys.argv[4] == "True" else 1)


class Publishing:
    """The connection to the broker, used only in the loop's thread. new: events to publish."""

    def __init__(self, session, new):
        self.session, self.publisher, self.new = session, session.publisher(), new
        self.loop = IOLoop()
        self.waiting = {}  # unconfirmed events, by stream and number
        self.channel = None

    def connect(self):
        pika.SelectConnection(
            pika.ConnectionParameters(address, port),
            on_open_callback=lambda connection: connection.channel(on_open_callback=self.opened),
            on_open_error_callback=self.ended,
            on_close_callback=self.ended,
            custom_ioloop=self.loop,
        )

    def ended(self, connection, reason):
        print(f"connection ended, {len(self.waiting)} not confirmed: {reason!r}", flush=True)
        self.channel = None
        self.loop.call_later(CONNECT_AGAIN_S, self.connect)

    def opened(self, channel):
        channel.add_on_close_callback(lambda *_: channel.connection.is_open and channel.connection.close())
        channel.confirm_delivery(self.answered, callback=lambda _: self.begin(channel))

    def begin(self, channel):
        self.channel, self.number, self.under_way = channel, 0, {}
        for event in tuple(self.waiting.values()):
            self.publish(event)
        self.take()
        self.session.ready()

    def take(self):
        """Publish new events."""
        while self.channel is not None and not self.new.empty():
            event = self.new.get()
            self.waiting[event.stream, event.seq] = event
            self.publish(event)

    def publish(self, event):
        if self.channel is not None and self.channel.is_open:
            self.number += 1
            self.under_way[self.number] = event  # the broker uses the same numbers
            self.channel.basic_publish(exchange, event.topic, event.payload, properties)

    def answered(self, frame):
        """Handle a confirm or refusal of an event, or of all events up to it."""
        last, several = frame.method.delivery_tag, frame.method.multiple
        for number in [each for each in self.under_way if each <= last] if several else [last]:
            event = self.under_way.pop(number)
            if isinstance(frame.method, pika.spec.Basic.Ack):
                del self.waiting[event.stream, event.seq]
                self.publisher.acknowledged(event)
            else:
                self.publish(event)


with cutset_client.connect() as session:
    new = queue.Queue()
    publishing = Publishing(session, new)
    publishing.connect()
    threading.Thread(target=publishing.loop.start, daemon=True).start()
    for event in publishing.publisher:
        publishing.publisher.sent(event)
        new.put(event)
        publishing.loop.add_callback_threadsafe(publishing.take)
