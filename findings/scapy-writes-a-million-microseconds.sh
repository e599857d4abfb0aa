#!/bin/sh
# Scapy writes a packet whose time is less than half a microsecond before a full second.
#
# Packages: scapy==2.8.0
# Guess: it is rounded to the next second.
# Seen: the fraction is written as 1,000,000 microseconds beside the old second, which readers that check
#   the range refuse.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: scapy==2.8.0
venv/bin/python - <<'EOF'
import struct
from pathlib import Path

from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

packet = Ether(bytes(60))
packet.time = 100.9999997
wrpcap("out.pcap", packet)
second, fraction = struct.unpack_from("<II", Path("out.pcap").read_bytes(), 24)
print("seconds:", second, "microseconds:", fraction)
assert (second, fraction) == (100, 1_000_000)
EOF
