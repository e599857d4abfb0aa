#!/bin/sh
# Bytes that each end of a TCP connection sent and received, by libtrace's traceends. The capture has a SYN of 40 bytes
# and ten data packets of 1,040 bytes from 10.0.0.1, and their eleven answers of 40 bytes; in IPv4, without options.
#
# Packages: libtrace-tools 3.0.22-0.1, libtrace3 3.0.22-0.1, libwandio1 3.0.22-0.1 (Debian 12, amd64)
# Guess: 10.0.0.1 sent 10,440 bytes and 10.0.0.2 received 10,440; 440 the other way.
# Seen: what is received is right, what is sent is not: 10.0.0.1 sent 51,240 bytes and 10.0.0.2 112,640. Each length is
#   added with its two bytes exchanged: 1,040 (0x0410) counts as 4,100 (0x1004), and 40 (0x0028) as 10,240 (0x2800).
#   The payload is right in both columns.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
for package in libtrace-tools=3.0.22-0.1 libtrace3=3.0.22-0.1 libwandio1=3.0.22-0.1; do
    apt-get download -q "$package" >/dev/null 2>&1
done
for package in *.deb; do
    dpkg-deb -x "$package" root
done
python3 - <<'PYTHON'
import socket
import struct

FORWARD = socket.inet_aton("10.0.0.1") + socket.inet_aton("10.0.0.2")


def packet(addresses, ports, flags, data=b""):
    tcp = struct.pack("!HHIIBBHHH", *ports, 1, 1, 0x50, flags, 65535, 0, 0) + data
    ip = struct.pack("!BBHHHBBH8s", 0x45, 0, 20 + len(tcp), 1, 0x4000, 64, 6, 0, addresses)
    return bytes(12) + b"\x08\x00" + ip + tcp


frames = [packet(FORWARD, (40000, 7000), 2)] + [packet(FORWARD, (40000, 7000), 0x18, bytes(1000))] * 10
frames += [packet(FORWARD[4:] + FORWARD[:4], (7000, 40000), 0x10)] * 11
with open("flow.pcap", "wb") as capture:
    capture.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for number, frame in enumerate(frames):
        capture.write(struct.pack("<4I", 1700000000, number * 1000, len(frame), len(frame)) + frame)
PYTHON
export LD_LIBRARY_PATH="$there/root/usr/lib:$there/root/usr/lib/x86_64-linux-gnu"
echo "endpoint, packets, bytes, payload sent; packets, bytes, payload received"
root/usr/bin/traceends pcapfile:flow.pcap | tee ends
grep -Eq '10\.0\.0\.1 +[^ ]+ +11 +51240 +10000 +11 +440 +0$' ends
grep -Eq '10\.0\.0\.2 +[^ ]+ +11 +112640 +0 +11 +10440 +10000$' ends
