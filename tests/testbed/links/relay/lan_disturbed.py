"""Which hosts of a region receive from which while its links are disturbed in turn. Runs inside the
sandbox.
"""

import json
import random
import select
import socket
import subprocess
from collections import Counter
from contextlib import suppress
from typing import Any

from experiments.planned.changes import LinkDirectionName, LinkState
from testbed.links.relay.controller import RelayEmulator
from tests.testbed.leftovers import wait_until
from tests.testbed.links.relay.lan import PORT, Bridged, Lan, host
from tests.testbed.network.observations import in_host
from topologies.link_parameters import LinkParameters

HOSTS = range(3)
EACH = 3  # datagrams from each host to each other
QUIET_S = 0.5
LOOKS = 20
USUAL = LinkParameters(delay_us=500)
DISTURBANCES = (
    (LinkState.BLACKHOLE, USUAL),
    (LinkState.DOWN, USUAL),
    (LinkState.UP, USUAL),
    (LinkState.UP, LinkParameters(delay_us=20_000, rate_bits_per_s=10_000_000)),
    (LinkState.UP, LinkParameters(delay_us=500, mtu_bytes=1400)),
)
SIZES = (60, 1450)  # the larger ones do not pass everywhere


def who_hears_whom(way: str, seed: int, steps: int) -> list[dict[str, int]]:
    """Return the datagrams that arrived, by sender, destination and receiver, after each of some random
    changes.
    """
    drawn = random.Random(seed)
    found = []
    with Lan(USUAL, Bridged if way == "bridged" else RelayEmulator) as lan:
        sockets = [in_host(lan, host(at), _open) for at in HOSTS]
        for step in range(steps):
            state, parameters = drawn.choice(DISTURBANCES)
            lan.put(drawn.choice(HOSTS), drawn.choice(tuple(LinkDirectionName)), state, parameters)
            wait_until(lambda: _is_settled(lan), "carriers to be noted")
            size = drawn.choice(SIZES)
            for at, sender in enumerate(sockets):
                for target in (*(f"10.0.0.{other + 2}" for other in HOSTS if other != at), "10.0.255.255"):
                    for _ in range(EACH):
                        with suppress(OSError):  # a link that is down, or too small
                            sender.sendto(f"{step} {at}>{target}".ljust(size).encode(), (target, PORT))
            found.append(_heard(sockets, step))
    return found


def _is_settled(lan: Lan) -> bool:
    """Return whether the kernel has updated the carrier states, which it does in the background."""
    places = [in_host(lan, host(at), _links) for at in HOSTS]
    return all(
        (link["operstate"] == "UP") == {"UP", "LOWER_UP"}.issubset(link["flags"])
        for link in (*_links(), *(link for there in places for link in there))
        if "LOOPBACK" not in link["flags"]
    )


def _links() -> list[dict[str, Any]]:
    said = subprocess.run(["ip", "-json", "link"], capture_output=True, check=True).stdout
    found: list[dict[str, Any]] = json.loads(said)
    return found


def _open() -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    opened.bind(("", PORT))
    opened.setblocking(False)
    return opened


def _heard(sockets: list[socket.socket], step: int) -> dict[str, int]:
    """Return what arrives until nothing has arrived for a while; nothing of an earlier step may arrive.

    The time is divided into several waits, because a stalled machine would otherwise seem quiet.
    """
    heard: Counter[str] = Counter()
    looks = 0
    while looks < LOOKS:
        there = select.select(sockets, [], [], QUIET_S / LOOKS)[0]
        looks = 0 if there else looks + 1
        for ready in there:
            sent_in, said = ready.recv(2000).decode().split()
            assert int(sent_in) == step
            heard[f"{said} at {sockets.index(ready)}"] += 1
    return dict(sorted(heard.items()))
