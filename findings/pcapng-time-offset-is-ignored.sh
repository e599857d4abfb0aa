#!/bin/sh
# A pcapng interface may say that its times count from another second than 1970 (option if_tsoffset). Three
# readers read a packet of half a second after that second.
#
# Packages: scapy==2.8.0, dpkt==1.9.8, python-pcapng==2.1.1
# Guess: all three add the offset.
# Seen: dpkt adds it; Scapy and python-pcapng do not, and date the packet to 1970.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: scapy==2.8.0 dpkt==1.9.8 python-pcapng==2.1.1
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
import pcapng
from scapy.utils import PcapNgReader

content = section() + interface(9, SECOND) + packet(0, 500_000_000)
by_dpkt = [float(time) for time, _ in dpkt.pcapng.Reader(BytesIO(content))]
by_scapy = [float(read.time) for read in PcapNgReader(BytesIO(content))]
by_pcapng = [float(each.timestamp) for each in pcapng.FileScanner(BytesIO(content)) if hasattr(each, "timestamp")]
print("dpkt:", by_dpkt, "scapy:", by_scapy, "python-pcapng:", by_pcapng)
assert by_dpkt == [SECOND + 0.5]
assert by_scapy == by_pcapng == [0.5]
EOF
