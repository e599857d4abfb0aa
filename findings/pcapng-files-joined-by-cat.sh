#!/bin/sh
# Two pcapng files that are joined by `cat` are one valid file with two sections. Each section numbers its
# interfaces from 0. Scapy and dpkt read such a file; the first section has microseconds, the second
# nanoseconds, and in one case the other byte order.
#
# Packages: scapy==2.8.0, dpkt==1.9.8
# Guess: both start again at the second section; or one refuses it.
# Seen: both take interface 0 of the first section for the packets of the second, so times are a thousand
#   times too late. In the other byte order, dpkt ends after the first section without an error.
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

import dpkt
from scapy.utils import PcapNgReader

first = section() + interface(6) + packet(0, SECOND * 10**6)
for order, by_dpkt in (("<", [SECOND, SECOND * 1000]), (">", [SECOND])):
    content = first + section(order) + interface(9, order=order) + packet(0, SECOND * 10**9, order)
    dpkts = [int(time) for time, _ in dpkt.pcapng.Reader(BytesIO(content))]
    scapys = [int(read.time) for read in PcapNgReader(BytesIO(content))]
    print("second section in order", order, "dpkt:", dpkts, "scapy:", scapys)
    assert dpkts == by_dpkt
    assert scapys == [SECOND, SECOND * 1000]
EOF
