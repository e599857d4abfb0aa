"""Placement of hosts and links, and the exact commands that create them."""

from dataclasses import replace

from experiments.planned.changes import LinkChange, LinkDirectionName, LinkState
from experiments.planned.plan import CapturePlan
from testbed.network.commands import hosts_file, inside_lines, outside_lines, raise_lines, table_lines
from testbed.network.network_layout import BridgePort, HostInterface, make_layout
from tests.testbed.network.plans import make_plan
from topologies.link_parameters import LinkParameters

PLAN = make_plan(2, 1, wan=LinkParameters(delay_us=10_000, mtu_bytes=1400))
LAYOUT = make_layout(PLAN)


def test_the_root_namespace_of_two_regions() -> None:
    pids = {"r0-gw": 10, "r0-proxy-0": 11, "r1-gw": 20, "r1-proxy-0": 21}
    queues = "numtxqueues 1 numrxqueues 1"
    pair = f"mtu 9216 {queues} type veth peer name"
    assert outside_lines(LAYOUT, pids) == [
        "link add lan0 mtu 9216 type bridge stp_state 0 mcast_snooping 0",
        "link set lan0 up",
        "link add lan1 mtu 9216 type bridge stp_state 0 mcast_snooping 0",
        "link set lan1 up",
        f"link add g0 {pair} eth0 address 02:00:0a:00:00:01 mtu 1500 {queues} netns 10",
        "link set g0 up",
        f"link add l1a {pair} eth0 address 02:00:0a:00:00:02 mtu 1500 {queues} netns 11",
        "link set l1a up",
        f"link add g1 {pair} eth0 address 02:00:0a:01:00:01 mtu 1500 {queues} netns 20",
        "link set g1 up",
        f"link add l2a {pair} eth0 address 02:00:0a:01:00:02 mtu 1500 {queues} netns 21",
        "link set l2a up",
        f"link add l0a {pair} eth1 address 02:00:0a:ff:00:01 mtu 1400 {queues} netns 10",
        "link set l0a up",
        f"link add l0b {pair} eth1 address 02:00:0a:ff:00:02 mtu 1400 {queues} netns 20",
        "link set l0b up",
        "link set g0 up master lan0",
        "link set g0 type bridge_slave learning off flood off",
        f"link add l1p {pair} l1b mtu 9216 {queues}",
        "link set l1b up",
        "link set l1p up master lan0",
        "link set l1p type bridge_slave learning off flood off",
        "link set g1 up master lan1",
        "link set g1 type bridge_slave learning off flood off",
        f"link add l2p {pair} l2b mtu 9216 {queues}",
        "link set l2b up",
        "link set l2p up master lan1",
        "link set l2p type bridge_slave learning off flood off",
    ]


def test_each_bridge_knows_behind_which_port_everyone_is() -> None:
    assert table_lines(LAYOUT.bridges) == [
        "fdb add 02:00:0a:00:00:01 dev g0 master static",
        "fdb add 02:00:0a:00:00:02 dev l1p master static",
        "fdb add 02:00:0a:01:00:01 dev g1 master static",
        "fdb add 02:00:0a:01:00:02 dev l2p master static",
    ]


def test_the_inside_of_a_host() -> None:
    assert inside_lines(LAYOUT, "r0-proxy-0") == [
        "link set lo up",
        "address add 10.0.0.2/16 dev eth0",
        "link set eth0 up",
        "route replace default via 10.0.0.1 dev eth0",
        "neighbour replace 10.0.0.1 lladdr 02:00:0a:00:00:01 dev eth0 nud permanent",
    ]


def test_the_inside_of_a_gateway() -> None:
    assert inside_lines(LAYOUT, "r1-gw") == [
        "link set lo up",
        "address add 10.1.0.1/16 dev eth0",
        "link set eth0 up",
        "address add 10.255.0.2/30 dev eth1",
        "link set eth1 up",
        "route replace 10.0.0.0/16 via 10.255.0.1 dev eth1",
        "neighbour replace 10.1.0.2 lladdr 02:00:0a:01:00:02 dev eth0 nud permanent",
        "neighbour replace 10.255.0.1 lladdr 02:00:0a:ff:00:01 dev eth1 nud permanent",
    ]


def test_settings_lost_when_an_interface_went_down_are_restored() -> None:
    sender = LAYOUT.sender("r0-r1", LinkDirectionName.BACKWARD)
    assert isinstance(sender, HostInterface)
    assert raise_lines(LAYOUT, sender) == [
        "link set eth1 up",
        "route replace 10.0.0.0/16 via 10.255.0.1 dev eth1",
        "neighbour replace 10.255.0.1 lladdr 02:00:0a:ff:00:01 dev eth1 nud permanent",
    ]


def test_a_lan_link_is_sent_on_by_the_host_and_by_the_bridges_port() -> None:
    forward = LAYOUT.sender("lan-r0-proxy-0", LinkDirectionName.FORWARD)
    backward = LAYOUT.sender("lan-r0-proxy-0", LinkDirectionName.BACKWARD)
    assert isinstance(forward, HostInterface)
    assert (forward.host, forward.name) == ("r0-proxy-0", "eth0")
    assert isinstance(backward, BridgePort)
    assert backward.name == "l1p"


def test_the_hosts_file_names_every_host() -> None:
    assert hosts_file(PLAN.hosts) == (
        "127.0.0.1 localhost\n10.0.0.1 r0-gw\n10.0.0.2 r0-proxy-0\n10.1.0.1 r1-gw\n10.1.0.2 r1-proxy-0\n"
    )


def test_names_and_addresses_of_a_large_network_are_short_and_differ() -> None:
    layout = make_layout(make_plan(20, 60))
    outside = [interface.outside for interface in layout.interfaces]
    outside += [name for bridge in layout.bridges for port in bridge.ports for name in (port.inside,) if name]
    outside += [f"{port.name}" for bridge in layout.bridges for port in bridge.ports if port.inside]
    assert len(set(outside)) == len(outside)
    assert max(map(len, outside)) <= 15
    macs = [interface.mac for interface in layout.interfaces]
    assert len(set(macs)) == len(macs)


def test_links_that_do_nothing_are_single_pairs() -> None:
    plan = replace(make_plan(2, 1, wan=LinkParameters(mtu_bytes=1400), lan=LinkParameters()), captures=())
    layout = make_layout(plan)
    assert layout.wirings == ()
    lines = outside_lines(layout, {"r0-gw": 10, "r0-proxy-0": 11, "r1-gw": 20, "r1-proxy-0": 21})
    queues = "numtxqueues 1 numrxqueues 1"
    assert (
        f"link add eth1 address 02:00:0a:ff:00:01 mtu 1400 {queues} netns 10 type veth"
        f" peer name eth1 address 02:00:0a:ff:00:02 mtu 1400 {queues} netns 20"
    ) in lines
    assert (
        f"link add l1p mtu 9216 {queues} type veth"
        f" peer name eth0 address 02:00:0a:00:00:02 mtu 1500 {queues} netns 11"
    ) in lines
    assert "link set l1p up master lan0" in lines
    assert not [line for line in lines if "l1a" in line or "l1b" in line or "l0a" in line]


def test_a_link_that_changes_or_is_captured_keeps_its_emulator() -> None:
    plan = make_plan(3, 1, wan=LinkParameters(), lan=LinkParameters())
    cut = LinkChange(0, "cut", "r0-r1", LinkDirectionName.FORWARD, LinkState.BLACKHOLE, LinkParameters())
    capture = CapturePlan("r1-r2@r1.pcap", link="r1-r2", side="r1")
    plan = replace(plan, changes=(cut,), captures=(capture,))
    assert [wiring.name for wiring in make_layout(plan).wirings] == ["r0-r1", "r1-r2"]
