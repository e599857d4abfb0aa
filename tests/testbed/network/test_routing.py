"""Routing protocols of gateways: fields of topologies, configurations of FRR, and reports of kernels."""

from pathlib import Path

import pytest

from analysis.timelines.links.route_history import RouteHistory
from experiments.loader import load_experiment
from experiments.planned.plan import Plan, plan_from_json, plan_to_json
from experiments.records.observations import RouteChange
from experiments.records.rundir import RunDirectory
from testbed.backends.simulator import Simulator
from testbed.errors import MachineError
from testbed.network.network_layout import make_layout
from testbed.network.routing import daemons
from testbed.network.routing.frr_configuration import configuration
from testbed.planning import make_plan
from tests.refusals import refusal
from topologies.loader import load_topology

EXPERIMENT = """\
name: pair
topology: TOPOLOGY
system: sprinkler
roles: {proxy: 1, driver: 1, client: 1}
workload: {event_size: 100B, rate: 10/s}
duration: 2s
"""
TOPOLOGY = """\
name: pair
regions: {a: {}, b: {}}
links: [{between: [a, b], delay: 15ms, backward: {delay: 20ms}}]
"""
TRIANGLE = """
  name: triangle
  regions: {a: {}, b: {}, c: {}}
  links: [{between: [a, b], delay: 1ms}, {between: [a, c], delay: 1ms}, {between: [b, c], delay: 1ms}]
  routing: ospf
"""


def plan_of(folder: Path, routing: str) -> Plan:
    (folder / "pair.yaml").write_text(f"{TOPOLOGY}routing: {routing}\n")
    (folder / "try.yaml").write_text(EXPERIMENT.replace("TOPOLOGY", "./pair.yaml"))
    experiment = load_experiment(str(folder / "try.yaml"))
    return make_plan(experiment, load_topology(experiment.topology), seed=1, links_kind="auto")


def configured(plan: Plan, gateway: str, daemon: str) -> list[str]:
    return configuration(plan, make_layout(plan), gateway, daemon).splitlines()


def test_ospf_has_the_links_delays_as_costs_and_the_given_timers(tmp_path):
    plan = plan_of(tmp_path, "{protocol: ospf, hello: 2s, bfd: {interval: 100ms}}")
    assert plan_from_json(plan_to_json(plan)) == plan
    ours, theirs = configured(plan, "a-gw", "ospfd"), configured(plan, "b-gw", "ospfd")
    assert " ip ospf cost 150" in ours
    assert " ip ospf cost 200" in theirs
    assert {" ip ospf hello-interval 2", " ip ospf dead-interval 40", " ip ospf bfd profile wan"} <= set(ours)
    assert ours[1:4] == ["interface eth0", " ip ospf area 0", " ip ospf passive"]
    assert configured(plan, "a-gw", "bfdd")[-2:] == ["  receive-interval 100", "  transmit-interval 100"]
    assert make_layout(plan).routes["a-gw"] == ()


def test_bgp_has_a_system_for_each_region_and_a_session_on_each_link(tmp_path):
    lines = configured(plan_of(tmp_path, "bgp"), "b-gw", "bgpd")
    assert "router bgp 64513" in lines
    assert " neighbor 10.255.0.1 remote-as 64512" in lines
    assert " timers bgp 60 180" in lines
    assert lines[-1] == "  network 10.1.0.0/16"


def test_static_is_the_default(tmp_path):
    plan = plan_of(tmp_path, "static")
    assert plan.routing is None
    assert len(make_layout(plan).routes["a-gw"]) == 1


@pytest.mark.parametrize(
    ("routing", "said"),
    [
        ("rip", "routing.protocol: "),
        ("{protocol: static, hello: 2s}", "routing.hello: is without effect with static routes"),
        ("{protocol: ospf, hello: 1500ms}", "routing.hello: should be whole seconds"),
        ("{protocol: ospf, dead: 5s}", "routing.dead: should be longer than hello, 10s"),
        ("{protocol: ospf, bfd: {interval: 5ms}}", "routing.bfd.interval: "),
    ],
)
def test_a_wrong_setting_is_refused_with_its_field(tmp_path, routing, said):
    assert said in refusal(plan_of, tmp_path, routing)


@pytest.mark.parametrize(
    ("link", "routing", "said"),
    [
        ("delay: 7s", "ospf", "links.0.delay: must be at most 6553500us: the limit of OSPF's cost"),
        (
            "delay: 2s",
            "{protocol: bgp, hello: 1s, dead: 4s}",
            "must take at most 2s, with jitter",
        ),
        ("delay: 700ms", "{protocol: ospf, bfd: {interval: 100ms}}", "links.0.delay: a round trip"),
        (
            "delay: 200ms, jitter: 110ms",
            "{protocol: ospf, bfd: {interval: 100ms}}",
            "links.0.jitter: ",
        ),
        (
            "delay: 1s, jitter: 600ms",
            "{protocol: ospf, dead: 11s}",
            "at most 500ms because of",
        ),
        ("delay: 9ms, loss: 50%", "bgp", "links.0.loss: must be less than 50% because of topology.routing"),
        ("delay: 9ms, corrupt: 100%", "ospf", "links.0.corrupt: must be less than 50%"),
        (
            "delay: 9ms, rate: 8kbit",
            "{protocol: ospf, hello: 1s, bfd: {interval: 10ms}}",
            "links.0.rate: must be at least 106912bit because",
        ),
    ],
)
def test_a_link_over_which_gateways_never_agree_is_refused(tmp_path, link, routing, said):
    text = TOPOLOGY.replace("delay: 15ms, backward: {delay: 20ms}", link)
    (tmp_path / "pair.yaml").write_text(f"{text}routing: {routing}\n")
    assert said in refusal(load_topology, str(tmp_path / "pair.yaml"))


def test_generated_topologies_support_routing(tmp_path):
    text = "name: ring\nkind: ring\nregions: 4\ndelays: {from: 1ms, to: 9ms}\nrouting: {protocol: bgp}\n"
    (tmp_path / "ring.yaml").write_text(text)
    assert load_topology(str(tmp_path / "ring.yaml")).routing.timers_us == (60_000_000, 180_000_000)


def test_weights_are_for_static_routes(tmp_path):
    text = TOPOLOGY.replace("delay: 15ms", "delay: 15ms, weight: 1") + "routing: ospf\n"
    (tmp_path / "pair.yaml").write_text(text)
    assert "links.0.weight: is for static routes" in refusal(load_topology, str(tmp_path / "pair.yaml"))


def test_virtual_time_refuses_routing(tmp_path):
    said = refusal(Simulator().adapted, plan_of(tmp_path, "ospf"))
    assert "topology.routing: routes in virtual time are fixed: use --on local" in said


def test_a_machine_without_the_daemons_is_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(daemons, "PROGRAMS", tmp_path / "nowhere")
    with pytest.raises(MachineError, match=r"`routing: ospf` needs a program .*package frr"):
        daemons.check_routing(plan_of(tmp_path, "ospf"))
    monkeypatch.setattr(daemons, "missing", lambda *_: ())
    monkeypatch.setattr(daemons, "has_other_users", lambda: False)
    with pytest.raises(MachineError, match="`routing: ospf` needs root"):
        daemons.check_routing(plan_of(tmp_path, "ospf"))


MONITORED = """\
[2026-01-01T10:00:00.5] 10.1.0.0/16 nhid 15 via 10.255.0.2 dev eth1 proto ospf metric 20
[2026-01-01T10:00:01.5] 10.1.0.0/16 nhid 22 via 10.255.0.2 dev eth1 proto ospf metric 20
[2026-01-01T10:00:02.5] 10.255.0.0/30 nhid 9 via 10.255.0.2 dev eth1 proto ospf metric 20
[2026-01-01T10:00:03.5] Deleted 10.1.0.0/16 nhid 22 via 10.255.0.2 dev eth1 proto ospf metric 20
[2026-01-01T10:00:04.5] 10.1.0.0/16 nhid 23 via 10.255.0.2 dev eth1 proto ospf metric 20
[2026-01-01T10:00:05.5] 2: eth0@if3: <NO-CARRIER,BROADCAST,MULTICAST,UP,M-DOWN> mtu 1500 state LOWERLAYERDOWN
[2026-01-01T10:00:06.5] 3: eth1@if5: <BROADCAST,MULTICAST> mtu 1500 qdisc noqueue state DOWN group default
    link/ether 2e:88:b8:d1:49:ee brd ff:ff:ff:ff:ff:ff
[2026-01-01T10:00:07.5] 3: eth1@if5: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP
[2026-01-01T10:00:08.5] 10.1.0.0/16 nhid 23 via 10.255.0.2 dev eth1 proto ospf metric 20
"""


def test_changes_are_those_of_the_link_also_when_its_interface_goes_down(tmp_path):
    run = RunDirectory(tmp_path)
    run.routing.mkdir()
    (run.routing / "a-gw-routes.log").write_text(MONITORED)
    found = daemons.RoutingDaemons(plan_of(tmp_path, "ospf"), run, str).changes()
    assert [(each.t_ns // 10**9 % 60, each.region, each.target, each.link) for each in found] == [
        (0, "a", "b", "a-b"),
        (3, "a", "b", ""),
        (4, "a", "b", "a-b"),
        (6, "a", "b", ""),
        (8, "a", "b", "a-b"),
    ]


def test_routes_are_followed_through_their_changes(tmp_path):
    (tmp_path / "try.yaml").write_text(EXPERIMENT.replace("TOPOLOGY", TRIANGLE))
    experiment = load_experiment(str(tmp_path / "try.yaml"))
    plan = make_plan(experiment, load_topology(experiment.topology), seed=1, links_kind="auto")
    changes = [
        RouteChange(10, "a", "c", "a-c"),
        RouteChange(10, "b", "c", "b-c"),
        RouteChange(20, "a", "c", "a-b"),  # b still sends to c by a: a loop
        RouteChange(20, "b", "c", "a-b"),
        RouteChange(30, "b", "c", "b-c"),
        RouteChange(40, "b", "c", ""),
    ]
    history = RouteHistory.from_changes(plan, changes)
    assert history.changed_ns(15, 40) == [(20, 30)]
    directions = history.directions
    assert directions(("a", "c"), 5) == []
    assert directions(("a", "c"), 15) == [("a-c", "forward")]
    assert directions(("a", "c"), 25) == []
    assert directions(("a", "c"), 35) == [("a-b", "forward"), ("b-c", "forward")]
    assert directions(("a", "c"), 45) == []
