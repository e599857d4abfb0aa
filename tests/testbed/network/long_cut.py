"""A cut of more than a minute, with continuous traffic towards it. Runs inside the sandbox.

Without permanent neighbours, the gateways would give up on each other after some 50 s and notify the hosts.
"""

import select
import socket
import time
from typing import Any

from experiments.planned.changes import LinkState
from testbed.links.selection import select_emulator
from testbed.network.network import Network
from tests.testbed.network.observations import (
    ECHO_PORT,
    IP_RECVERR,
    errors_told,
    in_host,
    neighbours,
    set_link,
    what_sending_says,
)
from tests.testbed.network.plans import make_plan

PLAN = make_plan(2, 1)
CUT_S = 70.0
INTERVAL_S = 0.5


def long_cut() -> dict[str, Any]:
    """Return what the hosts at both ends receive during the cut, and whether it heals."""
    with Network(PLAN, select_emulator("auto", 1)) as network:
        sockets = [_icmp_socket(network, host.name) for host in PLAN.hosts]
        senders = [
            _sender(network, "r0-proxy-0", "10.1.0.2"),
            _sender(network, "r1-proxy-0", "10.0.0.2"),
        ]
        set_link(network, PLAN, "r0-r1", LinkState.BLACKHOLE)
        began_s = time.monotonic()
        errors: list[str] = []
        while time.monotonic() < began_s + CUT_S:
            for sender in senders:
                errors += errors_told(sender, b"?")
            select.select(senders, (), (), INTERVAL_S)
        heard = sum(bool(select.select([each], (), (), 0)[0]) for each in sockets)
        states = [
            state
            for host in PLAN.hosts
            for entry in neighbours(network, host.name)
            for state in entry["state"]
        ]
        set_link(network, PLAN, "r0-r1", LinkState.UP)
        healed = what_sending_says(network, "r0-proxy-0", "10.1.0.2")
        return {"errors": errors, "icmp_heard": heard, "neighbours": sorted(set(states)), "healed": healed}


def _icmp_socket(network: Network, host: str) -> socket.socket:
    """Return a socket that gets every ICMP message of the host."""
    return in_host(network, host, lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))


def _sender(network: Network, host: str, address: str) -> socket.socket:
    opened = in_host(network, host, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    opened.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
    opened.setblocking(False)
    opened.connect((address, ECHO_PORT))
    return opened
