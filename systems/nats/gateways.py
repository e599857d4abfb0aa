"""Exits with code 0 when a server has gateways to and from COUNT others: gateways.py ADDRESS COUNT."""

import json
import sys
import time
import urllib.request

while True:
    with urllib.request.urlopen(sys.argv[1], timeout=2) as answer:  # noqa: S310 - an address of the run
        gateways = json.load(answer)
    ways = (gateways.get(f"{way}bound_gateways") or () for way in ("out", "in"))
    if all(len(way) >= int(sys.argv[2]) for way in ways):
        break
    time.sleep(0.1)
