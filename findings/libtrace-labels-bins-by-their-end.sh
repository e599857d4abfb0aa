#!/bin/sh
# Packets in each second, by libtrace's tracertstats. The capture has ten packets a second, at .05, .15, ... .95 s, for three
# seconds, then none for four (a cut), then again for two seconds.
#
# Packages: libtrace-tools 3.0.22-0.1, libtrace3 3.0.22-0.1, libwandio1 3.0.22-0.1 (Debian 12, amd64)
# Guess: a row for each second from 1700000000 to 1700000008, with 10, 10, 10, 0, 0, 0, 0, 10 and 10 packets.
# Seen: the first packet has a row of its own, and each other row is labelled with the end of its second, counted
#   from the first packet. The silence from 2.95 s to 7.05 s is rows 4.05 to 6.05; the packets of the last 0.9 s follow as
#   a tenth row. The text format (the default) prints whole seconds, so the cut seems to begin a second later.
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
import struct

udp = struct.pack("!HHHH", 5000, 7000, 108, 0) + bytes(100)
ip = struct.pack("!BBHHHBBHII", 0x45, 0, 128, 1, 0, 64, 17, 0, 0x0A000001, 0x0A000002)
frame = bytes(12) + b"\x08\x00" + ip + udp
with open("cut.pcap", "wb") as capture:
    capture.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for second in (0, 1, 2, 7, 8):
        for tenth in range(10):
            time = (1700000000 + second, tenth * 100_000 + 50_000)
            capture.write(struct.pack("<4I", *time, len(frame), len(frame)) + frame)
PYTHON
export LD_LIBRARY_PATH="$there/root/usr/lib:$there/root/usr/lib/x86_64-linux-gnu"
root/usr/bin/tracertstats -i 1 -o csv pcapfile:cut.pcap 2>/dev/null | tee rows
printf '%s\n' ts,packets 1700000000.050,1 1700000001.050,10 1700000002.050,10 1700000003.050,9 1700000004.050,0 \
    1700000005.050,0 1700000006.050,0 1700000007.050,1 1700000008.050,10 1700000008.950,9 >expected
cut -d, -f1,2 rows | cmp - expected
