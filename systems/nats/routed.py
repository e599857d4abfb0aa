"""Exits with code 0 when a server has had stable routes to COUNT others: routed.py ADDRESS COUNT.

Two servers that dial each other at the same time each close the other's route as a duplicate, and retry a
second later: an existing route may be closed again, and events published meanwhile are lost.
"""

import json
import sys
import time
import urllib.request

KEPT_S = 2.0
since_s, kept = time.monotonic(), set[tuple[str, int]]()
while len({remote for remote, _ in kept}) < int(sys.argv[2]) or time.monotonic() - since_s < KEPT_S:
    with urllib.request.urlopen(sys.argv[1], timeout=2) as answer:  # noqa: S310 - an address of the run
        routes = {(route["remote_id"], route["rid"]) for route in json.load(answer)["routes"] or ()}
    if routes != kept:
        since_s, kept = time.monotonic(), routes
    time.sleep(0.1)
