#!/bin/sh
# Two taps on one network see the same 100 packets, the second 250 ns after the first. Both captures are in nanoseconds;
# tcpslice merges them, as mergecap does.
#
# Packages: tcpslice 1.5-1, libosip2-15 5.3.0-2.1, libnids1.21 1.26-2, libnet1 1.1.6+dfsg-3.2 (Debian 12, amd64)
# Guess: 200 packets in nanoseconds. Its manual says that packets of two files with the same content and the same
#   time are taken once; these have different times.
# Seen: the result is in microseconds, and times are compared after they are cut to microseconds: where both taps
#   fall into the same microsecond, the second copy is missing (75 of 100 packets), so a merge of two taps looks like
#   packets that the second never saw. Option -D keeps all 200, in microseconds.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
for package in tcpslice=1.5-1 libosip2-15=5.3.0-2.1 libnids1.21=1.26-2 libnet1=1.1.6+dfsg-3.2; do
    apt-get download -q "$package" >/dev/null 2>&1
done
for package in *.deb; do
    dpkg-deb -x "$package" root
done
python3 - <<'PYTHON'
import struct

for tap, delay in (("first", 0), ("second", 250)):
    with open(tap + ".pcap", "wb") as capture:
        capture.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for number in range(100):
            ip = struct.pack("!BBHHHBBHII", 0x45, 0, 48, number, 0, 64, 17, 0, 0x0A000001, 0x0A000002)
            frame = bytes(12) + b"\x08\x00" + ip + struct.pack("!HHHH", 5000, 7000, 28, 0) + bytes(20)
            time = number * 10_000_000 + number % 4 * 250 + delay
            capture.write(struct.pack("<4I", 1700000000, time, len(frame), len(frame)) + frame)
PYTHON
export LD_LIBRARY_PATH="$there/root/usr/lib/x86_64-linux-gnu"
root/usr/bin/tcpslice -w merged.pcap first.pcap second.pcap
root/usr/bin/tcpslice -D -w all.pcap first.pcap second.pcap
python3 - <<'PYTHON'
import struct

seen = []
for name in ("merged.pcap", "all.pcap"):
    data = open(name, "rb").read()
    seen.append((hex(struct.unpack_from("<I", data)[0]), (len(data) - 24) // (16 + 62)))
print("magic number and packets, merged and with -D:", seen)
assert seen == [("0xa1b2c3d4", 125), ("0xa1b2c3d4", 200)], seen
PYTHON
