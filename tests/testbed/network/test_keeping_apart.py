"""Hosts of one LAN are separated silently, in the requested directions, and only from the given hosts."""

import contextlib
import socket
from unittest import mock

import pytest

from testbed.batches import run_batch
from testbed.errors import TestbedError
from testbed.links.selection import select_emulator
from testbed.network.neighbour_table import NeighbourTable
from testbed.network.network import Network
from testbed.network.network_layout import Neighbour
from tests.testbed.network.observations import in_host
from tests.testbed.network.plans import kinds_here, one_lan
from tests.testbed.sandboxed import sandboxed

pytestmark = pytest.mark.network

PLAN = one_lan(3)
HOSTS = tuple(process.host for process in PLAN.processes)
ONE, TWO, THREE = (process.name for process in PLAN.processes)
PORT = 9_000
QUIET_S = 0.3
EVERYONE = {"0>1", "0>2", "1>0", "1>2", "2>0", "2>1"}


def _receiver() -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.bind(("", PORT))
    opened.settimeout(QUIET_S)
    return opened


def _heard(network: Network) -> list[str]:
    """Return which host receives datagrams from which, when each host sends to each other."""
    address = {host.name: host.address for host in PLAN.hosts}
    sockets = [in_host(network, host, _receiver) for host in HOSTS]
    for sender, opened in enumerate(sockets):
        for host in HOSTS:
            opened.sendto(str(sender).encode(), (address[host], PORT))
    found = []
    for receiver, opened in enumerate(sockets):
        with contextlib.suppress(TimeoutError), opened:
            while True:
                found.append(f"{opened.recv(10).decode()}>{receiver}")
    return [way for way in sorted(found) if way[0] != way[-1]]


def _told(kind: str) -> list[list[str]]:
    with Network(PLAN, select_emulator(kind, 1)) as network:
        told = [_heard(network)]
        network.separate(ONE, [TWO], apart=True)
        told.append(_heard(network))
        network.separate(TWO, [ONE], apart=True)
        network.separate(ONE, [TWO, THREE], apart=True)
        told.append(_heard(network))
        network.separate(ONE, [TWO, THREE], apart=False)
        network.separate(TWO, [ONE], apart=False)
        return [*told, _heard(network)]


def _kept_apart_without_programs() -> list[str]:
    with Network(PLAN, select_emulator("relay", 1)) as network:
        with mock.patch("subprocess.Popen", side_effect=AssertionError("a program is started")):
            network.separate(ONE, [TWO, THREE], apart=True)
        return _heard(network)


def _told_of_a_lost_interface() -> str:
    run_batch("ip", ["link add one type veth peer name two"], doing="wiring")
    with contextlib.closing(NeighbourTable()) as table:
        table.replace([Neighbour("10.0.0.3", "02:00:0a:00:00:03", "one")])
        run_batch("ip", ["link delete one"], doing="unwiring")
        with pytest.raises(TestbedError) as caught:
            table.replace([Neighbour("10.0.0.3", "02:00:0a:00:00:03", "one")])
        return str(caught.value)


def test_separating_hosts_starts_no_program():
    assert set(sandboxed(_kept_apart_without_programs)) == EVERYONE - {"0>1", "0>2"}


def test_refusals_of_the_kernel_are_reported():
    assert sandboxed(_told_of_a_lost_interface) == "cannot set the neighbour 10.0.0.3: No such device"


@pytest.mark.parametrize("kind", kinds_here())
def test_packets_to_separated_hosts_are_dropped_until_they_are_rejoined(kind):
    before, one_way, more, after = (set(heard) for heard in sandboxed(_told, kind))
    assert before == EVERYONE
    assert one_way == EVERYONE - {"0>1"}
    assert more == EVERYONE - {"0>1", "1>0", "0>2"}
    assert after == EVERYONE
