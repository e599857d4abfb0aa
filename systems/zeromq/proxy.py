"""Forwards events: proxy.py CONFIGURATION.

Events of the region's publishers go to its subscribers and to the proxies of other regions; events from these
go only to its subscribers, so there are no duplicates or loops.
"""

import json
import sys
from pathlib import Path

import zmq
import zmq.utils.monitor

SUBSCRIBE = b"\x01"  # begins a subscription, which an XSUB socket sends and an XPUB socket receives
EVERYTHING = SUBSCRIBE  # to all topics
MONITORED = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED


def socket(kind):
    made = context.socket(kind)
    made.sndhwm = made.rcvhwm = settings["high_water"]
    made.heartbeat_ivl, made.heartbeat_timeout = settings["heartbeat_ms"], settings["patience_ms"]
    made.reconnect_ivl = settings["reconnect_ms"]
    if kind == zmq.XPUB:
        made.xpub_verbose = 1
    return made


settings = json.loads(Path(sys.argv[1]).read_text())
context = zmq.Context()
here, there = socket(zmq.XSUB), socket(zmq.XSUB)  # publishers of this region, proxies of others
proxies, subscribers = socket(zmq.XPUB), socket(zmq.XPUB)
monitor = there.get_monitor_socket(MONITORED)
here.bind(settings["publishers"])
proxies.bind(settings["proxies"])
subscribers.bind(settings["subscribers"])
for each in settings["others"]:
    there.connect(each)
for each in (here, there):
    each.send(EVERYTHING)
poller = zmq.Poller()
for each in (here, there, proxies, subscribers, monitor):
    poller.register(each, zmq.POLLIN)
subscribed = 0
print("subscribed:", subscribed, "of", len(settings["others"]), flush=True)
while True:
    for each, _ in poller.poll():
        if each is monitor:
            event = zmq.utils.monitor.recv_monitor_message(monitor)
            print(zmq.Event(event["event"]).name.lower(), event["endpoint"].decode(), flush=True)
            continue
        parts = each.recv_multipart()
        if each is here:
            proxies.send_multipart(parts)
            subscribers.send_multipart(parts)
        elif each is there:
            subscribers.send_multipart(parts)
        elif each is subscribers and parts[0].startswith(SUBSCRIBE):
            subscribers.send_multipart([parts[0].removeprefix(SUBSCRIBE), b""])  # confirm the subscription
        elif each is proxies and parts == [EVERYTHING]:
            subscribed += 1
            print("subscribed:", subscribed, "of", len(settings["others"]), flush=True)
