#!/bin/sh
# iperf3 sends 125 datagrams a second for six seconds through a forwarder, which drops all from the third second on, like
# a link that is cut and stays so until the end.
#
# Packages: iperf3 3.12-1+deb12u2, libiperf0 3.12-1+deb12u2, libsctp1 1.0.19+dfsg-2 (Debian 12, amd64)
# Guess: the receiver's line says that about 375 of 750 datagrams were lost (50 %), since iperf3 tells both ends how many
#   were sent.
# Seen: 0 of about 375 lost (0 %): datagrams count as lost when a later one arrives, and the total is the highest number
#   that arrived. The sender's line above it has 750 datagrams, and 0 % as well. If the link heals before the end, all
#   losses are reported for the second of the heal, and the seconds of the cut show 0/0 (0%).
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
for package in iperf3=3.12-1+deb12u2 libiperf0=3.12-1+deb12u2 libsctp1=1.0.19+dfsg-2; do
    apt-get download -q "$package" >/dev/null 2>&1
done
for package in *.deb; do
    dpkg-deb -x "$package" root
done
export LD_LIBRARY_PATH="$there/root/usr/lib/x86_64-linux-gnu"
python3 - <<'PYTHON'
import json
import socket
import subprocess
import threading
import time


def copy(source, target):
    while data := source.recv(65536):
        target.sendall(data)


def accept(listener, port):
    while True:
        pair = listener.accept()[0], socket.create_connection(("127.0.0.1", port))
        for source, target in (pair, pair[::-1]):
            threading.Thread(target=copy, args=(source, target), daemon=True).start()


def forward(front, port):
    back, began = socket.socket(type=socket.SOCK_DGRAM), None
    back.connect(("127.0.0.1", port))
    back.settimeout(5)
    while True:
        data, client = front.recvfrom(65536)
        if len(data) == 1000:
            began = began or time.monotonic()
            if time.monotonic() < began + 3:
                back.send(data)
        else:  # the greeting, which is answered
            back.send(data)
            front.sendto(back.recv(65536), client)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


port = free_port()
listener = socket.create_server(("127.0.0.1", 0))
front = socket.socket(type=socket.SOCK_DGRAM)
front.bind(listener.getsockname())
threading.Thread(target=accept, args=(listener, port), daemon=True).start()
threading.Thread(target=forward, args=(front, port), daemon=True).start()
program = "root/usr/bin/iperf3"
server = subprocess.Popen([program, "-s", "-1", "-B", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL)
time.sleep(1)
client = [program, "-J", "-u", "-b", "1M", "-l", "1000", "-t", "6", "-c", "127.0.0.1", "-p", str(front.getsockname()[1])]
sums = json.loads(subprocess.run(client, check=True, capture_output=True).stdout)["end"]
server.wait(10)
received, sent = sums["sum_received"], sums["sum_sent"]
print("sent", sent["packets"], "received", received["packets"], "lost", received["lost_packets"], received["lost_percent"], "%")
assert sent["packets"] > 700 and received["packets"] < 500 and received["lost_packets"] == 0
PYTHON
