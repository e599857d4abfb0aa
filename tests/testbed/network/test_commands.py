"""Placement of hosts and links, and the exact commands that create them."""

from dataclasses import replace

from experiments.planned.changes import LinkChange, LinkDirectionName, LinkState
from experiments.planned.plan import CapturePlan
from testbed.network.commands import outside_lines
from testbed.network.network_layout import make_layout
from tests.testbed.network.plans import make_plan
from topologies.link_parameters import LinkParameters


def test_names_and_addresses_of_a_large_network_are_short_and_differ():
    layout = make_layout(make_plan(20, 60))
    outside = [interface.outside for interface in layout.interfaces]
    outside += [name for bridge in layout.bridges for port in bridge.ports for name in (port.inside,) if name]
    outside += [f"{port.name}" for bridge in layout.bridges for port in bridge.ports if port.inside]
    assert len(set(outside)) == len(outside)
    assert max(map(len, outside)) <= 15
    macs = [interface.mac for interface in layout.interfaces]
    assert len(set(macs)) == len(macs)


def test_links_without_effects_are_single_pairs():
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


def test_a_link_that_changes_or_is_captured_keeps_its_emulator():
    plan = make_plan(3, 1, wan=LinkParameters(), lan=LinkParameters())
    cut = LinkChange(0, "cut", "r0-r1", LinkDirectionName.FORWARD, LinkState.BLACKHOLE, LinkParameters())
    capture = CapturePlan("r1-r2@r1.pcap", link="r1-r2", side="r1")
    plan = replace(plan, changes=(cut,), captures=(capture,))
    assert [wiring.name for wiring in make_layout(plan).wirings] == ["r0-r1", "r1-r2"]
