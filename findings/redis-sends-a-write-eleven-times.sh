#!/bin/sh
# redis-py writes to a server that executes commands, while its answers are lost, as when a link is cut in one
# direction. Only socket_timeout is set, to be quick.
#
# Packages: redis==8.1.0
# Guess: the command is sent once, and the timeout is raised: the client cannot know whether it was
#   executed.
# Seen: the same RPUSH is sent eleven times, each on a new connection, before the timeout is raised; the
#   list then holds the event eleven times. Ten retries are this version's default, for all commands.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: redis==8.1.0
venv/bin/python - <<'EOF'
import socket
import threading

import redis

commands = []

def serve(connection):
    buffer = b""
    while received := connection.recv(65536):
        buffer += received
        while buffer.startswith(b"*"):
            parts = buffer.split(b"\r\n")
            count = int(parts[0][1:])
            if len(parts) < 2 + 2 * count:
                break
            words, buffer = parts[2 : 2 + 2 * count : 2], b"\r\n".join(parts[1 + 2 * count :])
            commands.append(words[0].decode())
            if words[0] == b"HELLO":
                connection.sendall(b"%1\r\n$5\r\nproto\r\n:3\r\n")
            elif words[0] != b"RPUSH":
                connection.sendall(b"+OK\r\n")

def accept():
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=accept, daemon=True).start()
try:
    redis.Redis(port=listener.getsockname()[1], socket_timeout=0.2).rpush("log", "event 1")
except redis.TimeoutError as error:
    print("raised after", commands.count("RPUSH"), "times:", repr(error))
assert commands.count("RPUSH") == 11
EOF
