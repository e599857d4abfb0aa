#!/bin/sh
# A capture has two packets in nanoseconds, at .123456789 s and .123456790 s. Scapy reads it and writes it again,
# once as pcap and once as pcapng.
#
# Packages: scapy==2.8.0
# Guess: both files keep the nanoseconds, since what was read had them.
# Seen: both have microseconds, and they differ: pcap is rounded up to .123457, pcapng truncated to .123456.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check scapy==2.8.0
venv/bin/python - <<'PYTHON' 2>/dev/null
import struct

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap, wrpcap, wrpcapng

packet = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="192.0.2.1", dst="192.0.2.2") / UDP())
with open("read.pcap", "wb") as capture:
    capture.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
    for nanoseconds in (123456789, 123456790):
        capture.write(struct.pack("<4I", 1700000000, nanoseconds, len(packet), len(packet)) + packet)
packets = rdpcap("read.pcap")
wrpcap("written.pcap", packets)
wrpcapng("written.pcapng", packets)
seen = {name: [str(each.time)[10:] for each in rdpcap(name)] for name in ("read.pcap", "written.pcap", "written.pcapng")}
print(seen)
assert seen == {
    "read.pcap": [".123456789", ".123456790"],
    "written.pcap": [".123457"] * 2,
    "written.pcapng": [".123456"] * 2,
}
PYTHON
