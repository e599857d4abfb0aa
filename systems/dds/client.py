"""Writes or reads events: client.py publisher|subscriber PEERS DEPTH MAX_BLOCKING_US."""

import sys
import time
from dataclasses import dataclass

import cutset_client
from cyclonedds.core import DDSException, Listener
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import sequence, uint8
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

role, peers, depth, max_blocking_us = sys.argv[1], *map(int, sys.argv[2:])


@dataclass
class Event(IdlStruct, typename="Event"):
    payload: sequence[uint8]


class Received(Listener):
    def on_data_available(self, reader):
        for event in reader.take(1000):
            subscriber.got(bytes(event.payload))


def wait_for(matched):
    while len(matched()) < peers:
        time.sleep(0.05)
    session.ready()


qos = Qos(
    Policy.Reliability.Reliable(max_blocking_us * 1000),
    Policy.History.KeepLast(depth) if depth else Policy.History.KeepAll,
)
participant = DomainParticipant()
events = Topic(participant, "events", Event, qos)
with cutset_client.connect() as session:
    if role == "subscriber":
        subscriber = session.subscriber()
        reader = DataReader(participant, events, qos, listener=Received())
        wait_for(reader.get_matched_publications)
        session.wait_until_finished()
    else:
        writer, publisher = DataWriter(participant, events, qos), session.publisher()
        wait_for(writer.get_matched_subscriptions)
        for event in publisher:
            publisher.sent(event)
            try:
                writer.write(Event(list(event.payload)))
            except DDSException as error:
                print("event dropped:", error, flush=True)
