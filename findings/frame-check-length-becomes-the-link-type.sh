#!/bin/sh
# A pcap header holds the link type in 28 bits or fewer; the bits above say whether frames end with a check
# sequence, and how long it is. Here: Ethernet (1) with 4 bytes.
#
# Packages: scapy==2.8.0, dpkt==1.9.8
# Guess: Scapy and dpkt mask these bits, and read Ethernet.
# Seen: both take all 32 bits for the link type: Scapy yields Raw instead of Ethernet frames, dpkt says link
#   type 603979777.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: scapy==2.8.0 dpkt==1.9.8
venv/bin/python - <<'EOF'
import struct
from io import BytesIO

import dpkt
from scapy.utils import PcapReader

frame = bytes(12) + b"\x08\x00" + bytes(50)
header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1 | 1 << 26 | 2 << 28)
content = header + struct.pack("<IIII", 1, 0, len(frame), len(frame)) + frame
kinds = [type(read).__name__ for read in PcapReader(BytesIO(content))]
link = dpkt.pcap.Reader(BytesIO(content)).datalink()
print("scapy:", kinds, "dpkt:", link)
assert kinds == ["Raw"]
assert link == 1 | 1 << 26 | 2 << 28
EOF
