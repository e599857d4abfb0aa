"""A small network in a sandbox: its hosts see what was planned, and nothing else."""

import os
import shutil
import socket
import statistics
import tempfile
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import MachineError, TestbedError
from testbed.links.selection import kernel_has_netem, select_middles
from testbed.network import Network
from testbed.plan import Direction, LinkState
from tests.testbed.network.observations import (
    frames_seen,
    in_host,
    neighbours,
    packet_socket,
    reachable,
    routes,
    set_link,
    told,
    what_sending_says,
)
from tests.testbed.network.plans import make_plan
from tests.testbed.sandboxed import sandboxed, sandboxed_as_ordinary_user
from topologies.shape import Shape

pytestmark = pytest.mark.network

PLAN = make_plan(3, 2, shapes={(0, 2): Shape(delay_us=30_000)})
KINDS = ["relay", "netem"] if kernel_has_netem() else ["relay"]
"""Where the kernel has no netem, it is tested in user-mode Linux (tests/testbed/uml)."""


ACROSS = ["r0-proxy-0", "r0-proxy-1", "r1-proxy-0", "r2-gw"]


def _observe(kind: str) -> dict[str, Any]:
    """Everything about a network at rest."""
    with Network(PLAN, select_middles(kind, 1)) as network:
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
            "probes": network.probe("before"),
            "lost_percent": network.mininet.ping(network.mininet.get(*ACROSS), timeout=1),
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


@pytest.fixture(scope="module", params=KINDS)
def seen(request: pytest.FixtureRequest) -> dict[str, Any]:
    return sandboxed(_observe, request.param)


def test_every_host_knows_every_name(seen: dict[str, Any]) -> None:
    assert seen["names"] == {host.name: host.address for host in PLAN.hosts}


def test_hosts_reach_each_other_through_mininets_own_objects(seen: dict[str, Any]) -> None:
    assert seen["lost_percent"] == 0


def test_every_neighbour_is_known_for_good(seen: dict[str, Any]) -> None:
    for host in PLAN.hosts:
        entries = seen["neighbours"][host.name]
        on_lan = {other.address for other in PLAN.hosts if other.region == host.region} - {host.address}
        assert {entry["dst"] for entry in entries if entry["dev"] == "eth0"} == on_lan
        assert {tuple(entry["state"]) for entry in entries} == {("PERMANENT",)}
        if host.role == "gateway":
            assert len(entries) == len(on_lan) + 2  # and the gateway at the other end of each WAN link


def test_gateways_send_over_the_direct_link_even_where_a_detour_is_shorter(seen: dict[str, Any]) -> None:
    link = next(link for link in PLAN.links if link.name == "r0-r2")  # 30 ms; over r1 it would be 20 ms
    via = {route["dst"]: route.get("gateway") for route in seen["routes"]["r0-gw"]}
    assert via["10.2.0.0/16"] == link.b_address


def test_round_trips_are_twice_the_delays_and_never_less(seen: dict[str, Any]) -> None:
    asked_ms = {("r0", "r1"): 24, ("r0", "r2"): 64, ("r1", "r2"): 24}
    for sample in seen["probes"]:
        asked = asked_ms.pop((sample["from"], sample["to"]))
        assert min(sample["rtt_us"]) >= asked * 1000
        assert statistics.median(sample["rtt_us"]) < (asked + 3) * 1000
    assert not asked_ms


def test_an_idle_network_is_silent(seen: dict[str, Any]) -> None:
    assert seen["stray_frames"] == 0


def test_there_is_no_ipv6(seen: dict[str, Any]) -> None:
    families = {
        (interface["ifname"], address["family"])
        for interfaces in seen["addresses"].values()
        for interface in interfaces
        for address in interface["addr_info"]
    }
    assert {family for name, family in families if name != "lo"} == {"inet"}


def test_every_capture_finds_its_interface(seen: dict[str, Any]) -> None:
    assert [file for file, _, _ in seen["points"]] == [capture.file for capture in PLAN.captures]
    assert all(there for _, _, there in seen["points"])
    assert [interface for file, interface, _ in seen["points"] if file == "r0-r2@r2.pcap"] == ["l1b"]


def test_the_hosts_congestion_control_is_known(seen: dict[str, Any]) -> None:
    assert seen["congestion_control"]


def _fail_and_heal(kind: str) -> dict[str, Any]:
    """A link that is cut, then one that goes down."""
    middles = select_middles(kind, 1)
    with Network(PLAN, middles) as network:
        target = "10.1.0.2"
        seen: dict[str, Any] = {"kind": kind}
        applied = set_link(network, PLAN, "r0-r1", LinkState.BLACKHOLE)
        seen["cut_took_ms"] = max((each.applied_ns - each.requested_ns) / 1e6 for each in applied)
        seen["cut"] = reachable(network)
        seen["cut_says"] = what_sending_says(network, "r0-proxy-0", target, 0.5)
        set_link(network, PLAN, "r0-r1", LinkState.UP)
        seen["healed"] = reachable(network)
        gateways = ("r0-gw", "r1-gw")
        before = {host: (routes(network, host), neighbours(network, host)) for host in gateways}
        set_link(network, PLAN, "r0-r1", LinkState.DOWN)
        seen["down"] = reachable(network)
        seen["down_says"] = [
            what_sending_says(network, "r0-proxy-0", target, 2.0),
            what_sending_says(network, "r1-proxy-0", "10.0.0.2", 2.0),
            what_sending_says(network, "r2-proxy-0", target, 0.5),
        ]
        set_link(network, PLAN, "r0-r1", LinkState.UP)
        seen["up"] = reachable(network)
        seen["up_says"] = what_sending_says(network, "r0-proxy-0", target, 2.0)
        after = {host: (routes(network, host), neighbours(network, host)) for host in gateways}
        seen["as_before"] = [_sorted(after[host]) == _sorted(before[host]) for host in gateways]
        set_link(network, PLAN, "r0-r1", LinkState.BLACKHOLE, Direction.FORWARD)
        seen["one_way"] = reachable(network)
        seen["failure"] = middles.failure()
        return seen


def _sorted(told_by_ip: Any) -> list[list[str]]:
    return [sorted(map(str, part)) for part in told_by_ip]


@pytest.fixture(scope="module", params=KINDS)
def failing(request: pytest.FixtureRequest) -> dict[str, Any]:
    return sandboxed(_fail_and_heal, request.param)


ALL_BUT_R0_R1 = {"r0 r1": False, "r0 r2": True, "r1 r2": True}
ALL = {"r0 r1": True, "r0 r2": True, "r1 r2": True}


def test_a_cut_is_neither_healed_by_ip_nor_told_to_anyone(failing: dict[str, Any]) -> None:
    assert failing["cut"] == ALL_BUT_R0_R1
    assert failing["cut_says"] is None


def test_a_cut_of_one_direction_is_enough_to_lose_round_trips(failing: dict[str, Any]) -> None:
    assert failing["one_way"] == ALL_BUT_R0_R1


def test_a_cut_heals(failing: dict[str, Any]) -> None:
    assert failing["healed"] == ALL


def test_hosts_behind_a_link_that_is_down_hear_that_the_network_is_unreachable(
    failing: dict[str, Any],
) -> None:
    assert failing["down"] == ALL_BUT_R0_R1
    assert failing["down_says"][:2] == ["ENETUNREACH", "ENETUNREACH"]


def test_others_do_not_notice_a_link_that_is_down(failing: dict[str, Any]) -> None:
    assert failing["down_says"][2] == "ECONNREFUSED"  # the host itself answers: nobody listens there


def test_a_link_that_was_down_comes_back_with_its_routes_and_neighbours(failing: dict[str, Any]) -> None:
    assert failing["up"] == ALL
    assert failing["up_says"] == "ECONNREFUSED"
    assert failing["as_before"] == [True, True]


def test_middles_survive_a_link_that_is_down(failing: dict[str, Any]) -> None:
    assert failing["failure"] is None


def _bring_up_twice() -> str:
    with Network(PLAN, select_middles("auto", 1)):
        try:
            Network(PLAN, select_middles("auto", 1)).__enter__()
        except TestbedError as error:
            return str(error)
    return "came up"


def test_a_second_network_in_the_same_sandbox_is_refused() -> None:
    assert "needs a sandbox of its own" in sandboxed(_bring_up_twice)


def _with_tools_only(tools: list[str]) -> str:
    directory = Path(tempfile.mkdtemp())
    for tool in tools:
        (directory / tool).symlink_to(shutil.which(tool) or tool)
    os.environ["PATH"] = str(directory)
    try:
        Network(PLAN, select_middles("relay", 1)).__enter__()
    except MachineError as error:
        return str(error)
    return "came up"


def test_a_missing_mnexec_is_named_with_its_package() -> None:
    said = sandboxed(_with_tools_only, ["mount", "ip", "bridge"])
    assert "`mnexec`" in said
    assert "package mininet" in said


def _congestion_control(wanted: str) -> str:
    with Network(make_plan(1, 1), select_middles("auto", 1), congestion_control=wanted) as network:
        return network.congestion_control


def test_congestion_control_is_set_for_the_run_alone_where_it_may_be() -> None:
    of_the_machine = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    before = of_the_machine.read_text()
    assert sandboxed(_congestion_control, "reno") == "reno"  # always allowed
    assert of_the_machine.read_text() == before


def test_a_congestion_control_that_may_not_be_set_leaves_the_machines() -> None:
    assert sandboxed(_congestion_control, "no-such-algorithm") != "no-such-algorithm"


def _who_and_how() -> dict[str, Any]:
    with Network(PLAN, select_middles("auto", 1)) as network:
        return {
            "uid": os.getuid(),
            "reachable": reachable(network),
            "shell": network.mininet["r0-proxy-0"].cmd("id -u").strip(),
        }


def test_an_ordinary_user_gets_the_same_network(tmp_path: Path) -> None:
    seen = sandboxed_as_ordinary_user(_who_and_how, home=tmp_path)
    assert seen["uid"] != 0
    assert seen["shell"] == str(seen["uid"])
    assert seen["reachable"] == ALL
