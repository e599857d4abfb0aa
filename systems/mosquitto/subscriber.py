"""Subscribes at the broker of its region, to everything or to its topics: subscriber.py ADDRESS PORT QOS."""

import sys
import threading

import cutset_client
import paho.mqtt.client as mqtt

address, port, qos = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
asked = {}  # functions to call when the broker answers, by paho's numbers
asking = threading.Lock()


def subscribe(topics):
    with asking:  # has no effect without a connection: the next one subscribes to all
        number = client.subscribe([(f"+/{topic}", qos) for topic in topics])[1]
        asked[number] = lambda: subscriber.subscribed(*topics)


def unsubscribe(topic):
    with asking:
        number = client.unsubscribe(f"+/{topic}")[1]
        asked[number] = lambda: subscriber.unsubscribed(topic)


def connected(*_):
    """Subscribe to all topics: the broker has no state of earlier connections."""
    if subscriber.is_for_everything:
        client.subscribe("#", qos)
    elif topics := subscriber.topics:
        subscribe(topics)
    else:
        session.ready()


def answered(client, userdata, number, *_):
    with asking:
        answer = asked.pop(number, None)
    session.ready()
    if answer:
        answer()


with cutset_client.connect() as session:
    subscriber = session.subscriber()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, session.name)
    client.on_connect = connected
    client.on_subscribe = client.on_unsubscribe = answered
    client.on_message = lambda client, userdata, message: subscriber.got(message.payload, message.topic)
    client.connect_async(address, port)
    client.loop_start()
    for change in subscriber:
        if change.on:
            subscribe([change.topic])
        else:
            unsubscribe(change.topic)
