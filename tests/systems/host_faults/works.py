"""Uses a processor continuously; with an argument it also allocates 20 MB every 100 ms."""

import sys
import time

held = []
sys.stdout.write("works\n")
sys.stdout.flush()
while True:
    until_s = time.monotonic() + 0.1
    while time.monotonic() < until_s:
        pass
    if len(sys.argv) > 1:
        held.append(b"\1" * 20_000_000)
