"""Publishes to the broker of its region: publisher.py ADDRESS PORT QOS."""

import sys

import cutset_client
import paho.mqtt.client as mqtt

address, port, qos = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
under_way = {}  # events by paho's numbers; True for one that was acknowledged before it was added


def bridged(topic):
    """Return the topic for bridges of other regions: below the region of its publisher."""
    return topic if topic.startswith(f"{session.region}/") else f"{session.region}/{topic}"


with cutset_client.connect() as session:
    publisher = session.publisher()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, session.name, clean_session=False)
    client.max_queued_messages_set(0)
    client.on_connect = lambda *_: session.ready()

    def acknowledged(client, userdata, number, *_):
        if (event := under_way.setdefault(number, True)) is not True:
            del under_way[number]
            publisher.acknowledged(event)

    client.on_publish = acknowledged
    client.connect_async(address, port)
    client.loop_start()
    for event in publisher:
        publisher.sent(event)
        number = client.publish(bridged(event.topic), event.payload, qos).mid
        if under_way.setdefault(number, event) is True:
            del under_way[number]
            publisher.acknowledged(event)
