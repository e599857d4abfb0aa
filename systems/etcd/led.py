"""Exits with code 0 when a region's member leads; asks another leader to transfer: led.py ADDRESS REGION."""

import json
import sys
import urllib.request

address, region = sys.argv[1], sys.argv[2]


def ask(what, **given):
    request = urllib.request.Request(f"{address}/v3/{what}", json.dumps(given).encode())  # noqa: S310 - of the run
    with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
        return json.load(answer)


if region:
    regions = {each["ID"]: each["name"].rsplit("-", 2)[0] for each in ask("cluster/member/list")["members"]}
    status = ask("maintenance/status")
    leader, own = status["leader"], status["header"]["member_id"]
    if regions[leader] != region:
        if own == leader:
            [wanted] = (each for each, its in regions.items() if its == region)
            ask("maintenance/transfer-leadership", targetID=wanted)
        sys.exit(1)
