"""Channels with this system's settings, and calls on them. A message is a topic, a space and a payload."""

import json
import sys
from pathlib import Path

import grpc

SERVICE = "events"
settings = json.loads(Path(sys.argv[1]).read_text())


def options(keepalive_ms):
    """Return the options of a channel or server that pings at this interval; 0: gRPC's default."""
    if not keepalive_ms:
        return []
    return [
        ("grpc.keepalive_time_ms", keepalive_ms),
        ("grpc.keepalive_timeout_ms", settings["patience_ms"]),
        ("grpc.http2.ping_timeout_ms", settings["patience_ms"]),  # of its own pings, otherwise a minute
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]


def channel(address):
    backoff = ("grpc.max_reconnect_backoff_ms", settings["backoff_ms"])
    return grpc.insecure_channel(
        f"{address}:{settings['port']}", [*options(settings["keepalive_ms"]), backoff]
    )


def messages(address, subscriber, subscribed):
    """Yield what a server sends, from the moment that it has called `subscribed`, until the call ends."""
    with channel(address) as network:
        call = network.unary_stream(f"/{SERVICE}/Subscribe")(subscriber, wait_for_ready=True)
        call.initial_metadata()
        subscribed()
        try:
            yield from call
        except grpc.RpcError as error:
            print("call to", address, "ended:", error.code().name.lower(), error.details(), flush=True)
