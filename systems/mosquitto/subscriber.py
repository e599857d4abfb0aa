"""Subscribes to everything at the broker of its region: subscriber.py ADDRESS PORT QOS."""

import sys

import cutset_client
import paho.mqtt.client as mqtt

address, port, qos = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

with cutset_client.connect() as session:
    subscriber = session.subscriber()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, session.name)
    client.on_connect = lambda *_: client.subscribe("#", qos)
    client.on_subscribe = lambda *_: session.ready()
    client.on_message = lambda client, userdata, message: subscriber.got(message.payload, message.topic)
    client.connect_async(address, port)
    client.loop_start()
