"""Ends with code 0 once a server has kept its routes to so many others: routed.py ADDRESS COUNT.

Two servers that dial each other at once each close the other's route as a duplicate, and try again a second
later: a route that is there may be gone again, and with it what was published meanwhile.
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
