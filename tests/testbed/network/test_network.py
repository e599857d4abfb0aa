"""A small network at rest: its hosts see the planned network and nothing else."""

import os
import socket
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import TestbedError
from testbed.links.selection import select_emulator
from testbed.network import network as network_module
from testbed.network.network import Network
from tests.testbed.network.observations import (
    bundle_frames,
    frames_seen,
    in_host,
    neighbours,
    packet_socket,
    reachable,
    routes,
    told,
    what_sending_says,
)
from tests.testbed.network.plans import kinds_here, make_plan
from tests.testbed.sandboxed import sandboxed, sandboxed_as_ordinary_user
from topologies.link_parameters import LinkParameters

pytestmark = pytest.mark.network

PLAN = make_plan(
    3,
    2,
    parameters_of={
        (0, 2): LinkParameters(delay_us=30_000),
        (0, 1): LinkParameters(delay_us=10_000, mtu_bytes=1400),
    },
)
HEADERS = 28  # of IP and UDP
PING_S_MAX = 20
ACROSS = ["r0-proxy-0", "r0-proxy-1", "r1-proxy-0", "r2-gw"]


def _observe(kind: str) -> dict[str, Any]:
    """Return all observations of a network at rest."""
    with Network(PLAN, select_emulator(kind, 1)) as network:
        hosts = [host.name for host in PLAN.hosts]
        packets = [in_host(network, host, packet_socket) for host in hosts] + [packet_socket()]
        stray = frames_seen(packets, 1.5)
        for opened in packets:
            opened.close()
        return {
            "stray_frames": stray,
            "kind": kind,
            "names": {host: socket.gethostbyname(host) for host in hosts},
            "neighbours": {host: neighbours(network, host) for host in hosts},
            "routes": {host: routes(network, host) for host in hosts},
            "addresses": {host: told(network, host, "ip", "-j", "address", "show") for host in hosts},
            "lost_percent": network.mininet.ping(network.mininet.get(*ACROSS), timeout=PING_S_MAX),
            "bundle": bundle_frames(network, "r0-proxy-0", PLAN.hosts[-1].address),
            "larger": {
                size: what_sending_says(network, "r0-proxy-0", "10.1.0.2", size=size - HEADERS)
                for size in (1400, 1401)
            },
            "congestion_control": network.congestion_control,
            "points": [
                [capture.file, interface, _has_interface(network, path, interface)]
                for capture, path, interface in network.capture_points()
            ],
        }


def _has_interface(network: Network, path: str | None, interface: str) -> bool:
    if path is None:
        return interface in [name for _, name in socket.if_nameindex()]
    host = next(host.name for host in PLAN.hosts if network.netns(host.name) == path)
    return interface in [name for _, name in in_host(network, host, socket.if_nameindex)]


@pytest.fixture(scope="module", params=kinds_here())
def seen(request):
    return sandboxed(_observe, request.param)


def test_every_host_resolves_every_name(seen):
    assert seen["names"] == {host.name: host.address for host in PLAN.hosts}


def test_hosts_reach_each_other_through_mininets_own_objects(seen):
    assert seen["lost_percent"] == 0


def test_every_neighbour_entry_is_permanent(seen):
    for host in PLAN.hosts:
        entries = seen["neighbours"][host.name]
        on_lan = {other.address for other in PLAN.hosts if other.region == host.region} - {host.address}
        assert {entry["dst"] for entry in entries if entry["dev"] == "eth0"} == on_lan
        assert {tuple(entry["state"]) for entry in entries} == {("PERMANENT",)}
        if host.role == "gateway":
            assert len(entries) == len(on_lan) + 2  # and the gateway at the other end of each WAN link


def test_gateways_use_the_direct_link_even_if_a_detour_is_shorter(seen):
    link = next(link for link in PLAN.links if link.name == "r0-r2")  # 30 ms; over r1 it would be 20 ms
    via = {route["dst"]: route.get("gateway") for route in seen["routes"]["r0-gw"]}
    assert via["10.2.0.0/16"] == link.b_address


def test_an_idle_network_is_silent(seen):
    assert seen["stray_frames"] == 0


def test_there_is_no_ipv6(seen):
    families = {
        (interface["ifname"], address["family"])
        for interfaces in seen["addresses"].values()
        for interface in interfaces
        for address in interface["addr_info"]
    }
    assert {family for name, family in families if name != "lo"} == {"inet"}


def test_every_capture_finds_its_interface(seen):
    assert [file for file, _, _ in seen["points"]] == [capture.file for capture in PLAN.captures]
    assert all(there for _, _, there in seen["points"])
    assert [interface for file, interface, _ in seen["points"] if file == "r0-r2@r2.pcap"] == ["l1b"]


def test_a_bundle_of_datagrams_leaves_its_host_as_datagrams(seen):
    """Check it, so that captures and links see each datagram."""
    assert seen["bundle"] == [1_042] * 5 + [342]


def test_a_sender_is_notified_if_a_packet_exceeds_the_mtu_of_a_link(seen):
    """Check RFC 1191. A smaller packet arrives, and the host answers that the port is closed."""
    assert seen["larger"] == {"1400": "ECONNREFUSED", "1401": "EMSGSIZE"}


def _bring_up_twice() -> str:
    with Network(PLAN, select_emulator("auto", 1)):
        try:
            Network(PLAN, select_emulator("auto", 1)).__enter__()
        except TestbedError as error:
            return str(error)
    return "came up"


def test_a_second_network_in_the_same_sandbox_is_refused():
    assert "needs its own sandbox" in sandboxed(_bring_up_twice)


def _congestion_control(wanted: str) -> str:
    plan = replace(make_plan(1, 1), congestion_control=wanted)
    with Network(plan, select_emulator("auto", 1)) as network:
        return network.congestion_control


def test_congestion_control_is_set_for_the_run_alone_if_allowed():
    of_the_machine = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    before = of_the_machine.read_text()
    assert sandboxed(_congestion_control, "reno") == "reno"  # always allowed
    assert of_the_machine.read_text() == before


def _names_in(folder: str) -> list[str]:
    return [path.name for path in Path(folder).iterdir()]


def _while_its_file_is_mounted() -> dict[str, list[str]]:
    """Return the content of the temporary directory while the hosts' names are put in place."""
    seen: dict[str, list[str]] = {}
    bind = network_module.bind

    def watched(file: Path, target: Path) -> None:
        seen["then"] = _names_in(tempfile.gettempdir())
        bind(file, target)

    before = _names_in("/sys/kernel")
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        network_module.bind = watched
        with Network(make_plan(1, 1), select_emulator("auto", 1)):
            seen["afterwards"] = _names_in(folder)
            seen["hidden"] = sorted(set(before).difference(_names_in("/sys/kernel")))
            seen["names"] = [socket.gethostbyname("r0-proxy-0")]
    return seen


@pytest.mark.parametrize("who", ["the current user", "an ordinary user"])
def test_a_network_that_is_killed_at_any_moment_leaves_no_file(who, tmp_path):
    if who == "an ordinary user":
        seen = sandboxed_as_ordinary_user(_while_its_file_is_mounted, home=tmp_path)
    else:
        seen = sandboxed(_while_its_file_is_mounted)
    host = next(host for host in make_plan(1, 1).hosts if host.name == "r0-proxy-0")
    assert seen == {"then": [], "afterwards": [], "hidden": [], "names": [host.address]}


def _who_and_how() -> dict[str, Any]:
    with Network(PLAN, select_emulator("auto", 1)) as network:
        return {
            "uid": os.getuid(),
            "reachable": reachable(network),
            "shell": network.mininet["r0-proxy-0"].cmd("id -u").strip(),
        }


def test_an_ordinary_user_gets_the_same_network(tmp_path):
    seen = sandboxed_as_ordinary_user(_who_and_how, home=tmp_path)
    assert seen["uid"] != 0
    assert seen["shell"] == str(seen["uid"])
    assert seen["reachable"] == {"r0 r1": True, "r0 r2": True, "r1 r2": True}


def _ping_without_emulator(kind: str) -> tuple[float, list[str]]:
    plan = replace(make_plan(3, 2, wan=LinkParameters(), lan=LinkParameters()), captures=())
    with Network(plan, select_emulator(kind, 1)) as network:
        lost_percent = network.mininet.ping(network.mininet.get(*ACROSS), timeout=PING_S_MAX)
        return lost_percent, [name for _, name in socket.if_nameindex()]


@pytest.mark.parametrize("kind", kinds_here())
def test_links_without_effects_work_without_an_emulator(kind):
    lost_percent, names = sandboxed(_ping_without_emulator, kind)
    assert lost_percent == 0
    assert not [name for name in names if name.startswith("l") and name.endswith(("a", "b"))]
