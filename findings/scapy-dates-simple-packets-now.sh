#!/bin/sh
# A Simple Packet Block of pcapng has no time. Scapy reads one, dpkt reads the same file.
#
# Packages: scapy==2.8.0, dpkt==1.9.8
# Guess: Scapy gives such a packet no time, or 0.
# Seen: Scapy gives it the time at which it was read, which differs at each reading and looks like any
#   other. dpkt leaves the packet out.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: scapy==2.8.0 dpkt==1.9.8
venv/bin/python - <<'EOF'
import struct
from io import BytesIO

def block(kind, body, order="<"):
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size

def section(order="<"):
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)

def interface(resolution, offset_s=None, order="<"):
    options = struct.pack(order + "HHB3x", 9, 1, resolution)
    if offset_s is not None:
        options += struct.pack(order + "HHq", 14, 8, offset_s)
    return block(1, struct.pack(order + "HHI", 1, 0, 0) + options + bytes(4), order)

def packet(interface, ticks, order="<"):
    head = struct.pack(order + "IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(FRAME), len(FRAME))
    return block(6, head + FRAME, order)

FRAME = bytes(12) + b"\x88\xb5" + bytes(46)
SECOND = 1_700_000_000

import time

import dpkt
from scapy.utils import PcapNgReader

content = section() + interface(6) + block(3, struct.pack("<I", len(FRAME)) + FRAME)
before = time.time()
(read,) = PcapNgReader(BytesIO(content))
print("scapy:", float(read.time), "now:", before, "dpkt:", list(dpkt.pcapng.Reader(BytesIO(content))))
assert before <= float(read.time) <= time.time()
assert list(dpkt.pcapng.Reader(BytesIO(content))) == []
EOF
