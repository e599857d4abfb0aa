"""Blocks drop only the selected packets, which pass again when the block ends."""

import contextlib
import socket
from typing import Any

import pytest

from experiments.planned.changes import ProcessAction, ProcessChange
from testbed.links.selection import select_emulator
from testbed.network.network import Network
from tests.testbed.network.observations import in_host
from tests.testbed.network.test_connection_reset import HOSTS, ONE, PLAN, PORTS, THREE, TWO
from tests.testbed.sandboxed import sandboxed

pytestmark = pytest.mark.network

WAIT_S = 0.4
TO_ONE = [(host, port) for host in HOSTS[1:] for port in PORTS]


def _listening(network: Network, port: int) -> socket.socket:
    address = next(each.address for each in PLAN.hosts if each.name == HOSTS[0])
    return in_host(network, HOSTS[0], lambda: socket.create_server((address, port)))


def _connect(network: Network, host: str, port: int, wait_s: float = WAIT_S) -> socket.socket | str:
    """Return a connection from a host to the first one, or the error."""
    address = next(each.address for each in PLAN.hosts if each.name == HOSTS[0])
    try:
        return in_host(network, host, lambda: socket.create_connection((address, port), wait_s))
    except OSError as error:
        return type(error).__name__


def _comes(near: socket.socket, far: socket.socket) -> bool:
    far.settimeout(WAIT_S)
    try:
        near.sendall(b"?")
        return far.recv(100).endswith(b"?")
    except OSError:
        return False


def _blocked(rules: list[dict[str, Any]], ends: list[str]) -> dict[str, Any]:
    with Network(PLAN, select_emulator("relay", 1)) as network, contextlib.ExitStack() as opened:
        servers = {port: opened.enter_context(_listening(network, port)) for port in PORTS}
        pairs = {}
        for host, port in TO_ONE:
            near = _connect(network, host, port, 5)
            assert isinstance(near, socket.socket)
            far, _ = servers[port].accept()
            pairs[host, port] = (opened.enter_context(near), opened.enter_context(far))
        for rule in rules:
            change = ProcessChange(0, rule["rule"], action=ProcessAction.BLOCK, **rule)
            network.block(change)
        for name in ends:
            [rule] = [each for each in rules if each["rule"] == name]
            network.block(ProcessChange(0, name, action=ProcessAction.UNBLOCK, **rule))
        standing = [key for key, ends_ in pairs.items() if _comes(*ends_)]
        new = {}
        for host, port in TO_ONE:
            made = _connect(network, host, port)
            new[f"{host} {port}"] = made if isinstance(made, str) else "connected"
            if not isinstance(made, str):
                made.close()
        return {"standing": standing, "new": new}


def _rule(process: str = TWO, peers: tuple[str, ...] = (ONE,), **given: Any) -> dict[str, Any]:
    return {"process": process, "peers": peers, "rule": "wall", **given}


OTHERS = {f"{host} {port}": "connected" for host, port in TO_ONE}
SECOND, THIRD = HOSTS[1:]


@pytest.mark.parametrize(
    ("rule", "silent", "new"),
    [
        (_rule(), {(SECOND, port) for port in PORTS}, {f"{SECOND} {port}": "TimeoutError" for port in PORTS}),
        (_rule(port=7_002), {(SECOND, 7_002)}, {f"{SECOND} 7002": "TimeoutError"}),
        (_rule(port=7_002, new=True), set(), {f"{SECOND} 7002": "TimeoutError"}),
        (
            _rule(new=True, refuse=True),
            set(),
            {f"{SECOND} {port}": "ConnectionRefusedError" for port in PORTS},
        ),
        (_rule(port=7_001, refuse=True), {(SECOND, 7_001)}, {f"{SECOND} 7001": "ConnectionRefusedError"}),
        (_rule(ONE, (THREE,), port=7_001), set(), {f"{THIRD} 7001": "TimeoutError"}),
        (_rule(port=7_009), set(), {}),
    ],
    ids=["all", "port", "new", "refused", "reset", "answers", "another port"],
)
def test_a_block_drops_exactly_its_packets(rule, silent, new):
    told = sandboxed(_blocked, [rule], [])
    assert {tuple(each) for each in told["standing"]} == set(TO_ONE) - silent
    assert told["new"] == OTHERS | new


def test_blocks_add_up_and_each_ends_by_itself():
    rules = [_rule(), _rule(port=7_002) | {"rule": "narrow-wall"}]
    told = sandboxed(_blocked, rules, ["wall"])
    assert {tuple(each) for each in told["standing"]} == set(TO_ONE) - {(SECOND, 7_002)}
    told = sandboxed(_blocked, rules, ["wall", "narrow-wall"])
    assert {tuple(each) for each in told["standing"]} == set(TO_ONE)
    assert told["new"] == OTHERS
