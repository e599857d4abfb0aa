#!/bin/sh
# paho-mqtt publishes with QoS 1 and with QoS 0 before it is connected, then connects.
#
# Packages: paho-mqtt==2.2.0
# Guess: both fail with the code for no connection, and neither is sent.
# Seen: both return that code, and is_published() raises that the publish failed; yet the message with QoS 1
#   is sent when the client connects. A program that publishes again after the error delivers it twice. The
#   message with QoS 0 is gone.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: paho-mqtt==2.2.0
venv/bin/python - <<'EOF'
import socket
import threading

from paho.mqtt import client as mqtt

sent = bytearray()
arrived = threading.Event()

def serve():
    connection, _ = listener.accept()
    while received := connection.recv(65536):
        sent.extend(received)
        if received[0] == 0x10:
            connection.sendall(bytes([0x20, 2, 0, 0]))
        if b"second" in sent:
            connection.sendall(bytes([0x40, 2, 0, once.mid]))
            arrived.set()

listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, daemon=True).start()
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
none, once = client.publish("topic", "first", qos=0), client.publish("topic", "second", qos=1)
assert none.rc == once.rc == mqtt.MQTT_ERR_NO_CONN
try:
    once.is_published()
except RuntimeError as error:
    print("QoS 1 before the connection:", error)
client.connect("127.0.0.1", listener.getsockname()[1])
client.loop_start()
assert arrived.wait(10)
print("bytes sent:", bytes(sent))
assert b"first" not in sent
EOF
