#!/bin/sh
# A client reads numbers from a stream; then its path carries nothing in either direction, and no end is told.
# grpc.keepalive_time_ms and grpc.keepalive_timeout_ms are 1000.
#
# Packages: grpcio==1.85.3
# Guess: the call fails about 2 s after the path became silent, or 10 s more if there is a least time.
# Seen: it fails after 60 s, with "ping timeout". With grpc.http2.ping_timeout_ms=1000, too, after 1.1 s: the
#   client had sent a ping of its own to measure the path, and waits for that one by that option (one minute).
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: grpcio==1.85.3
venv/bin/python - 2>errors.txt <<'PYTHON'
import contextlib
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc


def numbers(request, context):
    while context.is_active():
        yield b"1"
        time.sleep(0.1)


methods = {"numbers": grpc.unary_stream_rpc_method_handler(numbers)}
server = grpc.server(ThreadPoolExecutor(4))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("testbed", methods),))
server_port = server.add_insecure_port("127.0.0.1:0")
server.start()
is_silent = threading.Event()
path = socket.create_server(("127.0.0.1", 0))


def carry(one, other):
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            if not is_silent.is_set():
                other.sendall(data)


def accept():
    while True:
        client, _ = path.accept()
        onward = socket.create_connection(("127.0.0.1", server_port))
        for pair in ((client, onward), (onward, client)):
            threading.Thread(target=carry, args=pair, daemon=True).start()


def seconds_until_it_fails(**options):
    is_silent.clear()
    named = [(f"grpc.{name.replace('__', '.')}", value) for name, value in options.items()]
    target = f"127.0.0.1:{path.getsockname()[1]}"
    with grpc.insecure_channel(target, [*named, ("grpc.use_local_subchannel_pool", 1)]) as channel:
        call = channel.unary_stream("/testbed/numbers")(b"")
        for _ in range(10):
            next(call)
        is_silent.set()
        begin = time.monotonic()
        try:
            for _ in call:
                pass
        except grpc.RpcError as error:
            print(error.code(), error.details())
        return time.monotonic() - begin


threading.Thread(target=accept, daemon=True).start()
keepalive = {"keepalive_time_ms": 1000, "keepalive_timeout_ms": 1000}
alone = seconds_until_it_fails(**keepalive)
both = seconds_until_it_fails(**keepalive, http2__ping_timeout_ms=1000)
print(f"failed after {alone:.1f} s; with http2.ping_timeout_ms after {both:.1f} s")
assert alone > 50
assert both < 10
server.stop(None)
PYTHON
