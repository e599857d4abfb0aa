"""Connection resets by faults: only the selected connections, at both ends."""

import contextlib
import socket
from typing import Any

import pytest

from testbed.links.selection import select_emulator
from testbed.network.network import Network
from tests.testbed.network.observations import in_host
from tests.testbed.network.plans import one_lan
from tests.testbed.sandboxed import sandboxed

pytestmark = pytest.mark.network

PLAN = one_lan(3)
HOSTS = tuple(process.host for process in PLAN.processes)
ONE, TWO, THREE = (process.name for process in PLAN.processes)
PORTS = (7_001, 7_002)
WAIT_S = 5


def _connected(network: Network, host: str, port: int) -> tuple[socket.socket, socket.socket]:
    """Return a connection from a host to the first one."""
    address = next(each.address for each in PLAN.hosts if each.name == HOSTS[0])
    listening = in_host(network, HOSTS[0], lambda: socket.create_server((address, port)))
    near = in_host(network, host, lambda: socket.create_connection((address, port), WAIT_S))
    with contextlib.closing(listening):
        far, _ = listening.accept()
    far.settimeout(WAIT_S)
    return near, far


def _stands(ends: tuple[socket.socket, socket.socket]) -> bool:
    near, far = ends
    try:
        near.sendall(b"?")
        return far.recv(1) == b"?"
    except OSError:
        return False


def _error(end: socket.socket) -> str:
    try:
        end.recv(1)
    except OSError as error:
        return type(error).__name__
    return "nothing"


def _reset(peers: list[str], port: int | None) -> dict[str, Any]:
    with Network(PLAN, select_emulator("relay", 1)) as network:
        made = {(host, port): _connected(network, host, port) for host in HOSTS[1:] for port in PORTS}
        assert all(map(_stands, made.values()))
        network.reset(ONE, peers, port)
        gone = [key for key, ends in made.items() if not _stands(ends)]
        errors = {_error(end) for key in gone for end in made[key]}
        again = _stands(_connected(network, HOSTS[1], 7_003))
        for ends in made.values():
            for end in ends:
                end.close()
        return {"gone": gone, "errors": sorted(errors), "again": again}


@pytest.mark.parametrize(
    ("peers", "port", "gone"),
    [
        ([], None, {(host, port) for host in HOSTS[1:] for port in PORTS}),
        ([TWO], None, {(HOSTS[1], 7_001), (HOSTS[1], 7_002)}),
        ([], 7_002, {(HOSTS[1], 7_002), (HOSTS[2], 7_002)}),
        ([TWO, THREE], 7_001, {(HOSTS[1], 7_001), (HOSTS[2], 7_001)}),
        ([THREE], 7_002, {(HOSTS[2], 7_002)}),
        ([THREE], 7_009, set()),
    ],
)
def test_only_the_selected_connections_are_reset(peers, port, gone):
    told = sandboxed(_reset, peers, port)
    assert set(map(tuple, told["gone"])) == gone
    assert set(told["errors"]) <= {"ConnectionAbortedError", "ConnectionResetError", "nothing"}
    assert told["again"], "a new one comes up as ever"
