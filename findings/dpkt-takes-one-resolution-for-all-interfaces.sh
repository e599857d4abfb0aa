#!/bin/sh
# dpkt reads the times of a pcapng file with two interfaces, one in microseconds and one in nanoseconds (as a
# merge of a laptop's and a capture card's file has them).
#
# Packages: dpkt==1.9.8
# Guess: each packet is read with the resolution of its own interface.
# Seen: the first interface's resolution is used for all: a packet of the second comes out in the year
#   55840, a thousand times too late.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: dpkt==1.9.8
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

content = section() + interface(6) + interface(9)
content += packet(0, SECOND * 10**6) + packet(1, SECOND * 10**9)
times = [time for time, _ in dpkt.pcapng.Reader(BytesIO(content))]
print("dpkt", dpkt.__version__, "times in s:", times)
assert times == [SECOND, SECOND * 1000]
EOF
