"""Publishes or subscribes at the server of its region: client.py SETTINGS publisher|subscriber ADDRESS."""

import sys
import threading
import time

import cutset_client
import grpc
from channel import SERVICE, channel, messages, settings


def publish(session, address):
    publisher = session.publisher()

    def events():
        for event in publisher:
            publisher.sent(event)
            yield f"{event.topic} ".encode() + event.payload

    with channel(address) as network:
        grpc.channel_ready_future(network).result()
        session.ready()
        is_open = True
        while is_open:
            try:
                network.stream_unary(f"/{SERVICE}/Publish")(events(), wait_for_ready=True)
                is_open = False
            except grpc.RpcError:
                time.sleep(settings["retry_s"])


def subscribe(session, address):
    subscriber = session.subscriber()
    while True:
        for message in messages(address, b"subscriber", session.ready):
            topic, _, payload = message.partition(b" ")
            subscriber.got(payload, topic.decode())
        time.sleep(settings["retry_s"])


with cutset_client.connect() as connected:
    work = publish if sys.argv[2] == "publisher" else subscribe
    threading.Thread(target=work, args=[connected, sys.argv[3]], daemon=True).start()
    connected.wait_until_finished()
