"""Exits with code 0 when COUNT bridges of a broker are connected: bridged.py ADDRESS PORT COUNT."""

import sys
import threading

import paho.mqtt.client as mqtt

address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connected = set()
all_connected = threading.Event()


def heard(client, userdata, message):
    (connected.add if message.payload == b"1" else connected.discard)(message.topic)
    if len(connected) >= count:
        all_connected.set()


client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
client.on_connect = lambda *_: client.subscribe("$SYS/broker/connection/+/state", 1)
client.on_message = heard
client.connect(address, port)
client.loop_start()
if count:
    all_connected.wait()
