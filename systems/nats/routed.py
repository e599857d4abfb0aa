"""Ends with code 0 once a server has routes to so many others: routed.py ADDRESS COUNT."""

import json
import sys
import time
import urllib.request

remote: set[str] = set()
while len(remote) < int(sys.argv[2]):
    with urllib.request.urlopen(sys.argv[1], timeout=2) as answer:  # noqa: S310 - an address of the run
        remote = {route["remote_id"] for route in json.load(answer)["routes"] or ()}
    time.sleep(0.1)
