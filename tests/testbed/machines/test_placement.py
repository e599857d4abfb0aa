"""Placement of a plan on machines: each part is on one machine, and all parts together are the plan."""

from dataclasses import replace

import pytest

from experiments.loader import read_experiment
from experiments.planned.changes import LinkChange, LinkDirectionName
from experiments.planned.plan import Plan
from testbed.assignment import assigned_part, assignment_from_json, assignment_to_json
from testbed.machines.inventory import Inventory, InventoryMachine, Shaping
from testbed.machines.placement import adapted, assignments, place
from testbed.network.network_layout import NetworkLayout, make_layout
from testbed.planning import make_plan
from tests.testbed.machines.test_findings import inventory, machine
from topologies.errors import InputError
from topologies.link_parameters import LinkParameters
from topologies.loader import load_topology

FIRST_NETWORK = 0xFFFFFE  # two before the last one there can be


@pytest.fixture(scope="module")
def plan() -> Plan:
    """link-failure: four regions, six processes each, a cut and a restore."""
    experiment = read_experiment("link-failure", []).experiment
    return make_plan(experiment, load_topology(experiment.topology), seed=None, links_kind="relay")


FOUR = inventory(*(machine(number, serves=(f"r{number}",)) for number in range(4)))
FIVE = inventory(
    machine(0, serves=("r0", "r1")),
    machine(1, serves=("r2",)),
    machine(2, serves=("r2",)),
    machine(3),
    machine(4, serves=("r2",)),
)


def layouts(plan: Plan, machines: Inventory) -> dict[str, NetworkLayout]:
    placement = place(plan, machines)
    return {
        name: make_layout(plan, assignment)
        for name, assignment in assignments(plan, machines, placement, FIRST_NETWORK).items()
    }


def test_a_region_is_spread_evenly_over_its_machines_with_its_gateway_on_the_first(plan: Plan) -> None:
    placement = place(plan, FIVE)
    hosts = {each.name: placement.hosts(each) for each in placement.machines}
    assert [len(hosts[name]) for name in ("h1", "h2", "h4")] == [3, 2, 2]
    assert "r2-gw" in hosts["h1"]
    assert len(hosts["h0"]) == 14
    assert len(hosts["h3"]) == 7, "r3 goes to the machine that serves nothing"


@pytest.mark.parametrize(
    ("machines", "problem"),
    [
        (
            [machine(0, serves=("r0",)), machine(1, serves=("r9",))],
            "machines.1.serves: the topology has no region r9",
        ),
        ([machine(0, serves=("r0",))], "machines: no machine serves r1, r2, r3; each serves other regions"),
        ([machine(0, takes=23)], "takes: region r3 has more node processes than its machines take: h0 (23)"),
    ],
)
def test_placements_beyond_the_machines_are_refused(
    plan: Plan, machines: list[InventoryMachine], problem: str
) -> None:
    with pytest.raises(InputError) as raised:
        place(plan, inventory(*machines))
    assert str(raised.value).startswith(f"lab.yaml: {problem}")


@pytest.mark.parametrize("machines", [FOUR, FIVE, inventory(machine(0, takes=24))])
def test_each_host_interface_and_route_is_on_exactly_one_machine(plan: Plan, machines: Inventory) -> None:
    whole, parts = make_layout(plan), layouts(plan, machines)
    here = [each for part in parts.values() for each in part.interfaces]
    assert len(here) == len(whole.interfaces)
    assert set(here) == set(whole.interfaces)
    for name in ("routes", "neighbours"):
        together = {host: found for part in parts.values() for host, found in getattr(part, name).items()}
        assert together == getattr(whole, name)


@pytest.mark.parametrize("machines", [FOUR, FIVE])
def test_a_link_between_machines_is_shaped_by_the_sending_machine(plan: Plan, machines: Inventory) -> None:
    parts = layouts(plan, machines)
    for link in plan.links:
        wirings = [wiring for part in parts.values() for wiring in part.wirings if wiring.name == link.name]
        shaped = [
            (direction, parameters)
            for wiring in wirings
            for direction, parameters in wiring.parameters.items()
        ]
        assert sorted(shaped) == [
            (LinkDirectionName.BACKWARD, link.backward),
            (LinkDirectionName.FORWARD, link.forward),
        ]
        assert len(wirings) == 1 or link.kind == "wan"


def test_each_tunnel_has_a_network_identifier_of_its_own(plan: Plan) -> None:
    found = assignments(plan, FIVE, place(plan, FIVE), FIRST_NETWORK)
    ends: dict[int, list[tuple[str, str, str, str]]] = {}
    for name, assignment in found.items():
        for tunnel in assignment.tunnels:
            ends.setdefault(tunnel.network, []).append((name, tunnel.machine, tunnel.local, tunnel.remote))
    for (here, there, local, remote), other in ends.values():
        assert other == (there, here, remote, local)
    # r0 and r1 share a machine: 5 of 6 WAN links, and 3 LAN ways between the machines of r2.
    assert sorted(ends) == [0, 1, 2, 3, 4, 5, 0xFFFFFE, 0xFFFFFF]


@pytest.mark.parametrize("machines", [FOUR, FIVE])
def test_the_parts_of_a_plan_are_the_whole_each_once(plan: Plan, machines: Inventory) -> None:
    placement = place(plan, machines)
    fit = adapted(plan, machines, placement, 1600)
    parts = [
        assigned_part(fit, assignment) for assignment in assignments(fit, machines, placement, 1).values()
    ]
    for field in ("processes", "captures", "changes"):
        together = [each for part in parts for each in getattr(part, field)]
        assert len(together) == len(getattr(fit, field))
        assert all(each in together for each in getattr(fit, field))


def test_links_between_machines_respect_the_networks_mtu(plan: Plan) -> None:
    fit = adapted(plan, FIVE, place(plan, FIVE), 1500)
    mtus = {link.name: link.forward.mtu_bytes for link in fit.links}
    assert mtus["r0-r1"] == 1500, "both are on h0"
    assert mtus["r0-r2"] == mtus["r2-r3"] == 1450
    assert mtus["lan-r2-client-0"] == 1450, "r2's LAN is partly a tunnel"
    assert mtus["lan-r0-client-0"] == 1500
    changed = [change for change in fit.changes if isinstance(change, LinkChange)]
    assert {change.parameters.mtu_bytes for change in changed} == {1450}


def test_if_the_site_shapes_links_the_emulators_only_cut_them(plan: Plan) -> None:
    site = replace(FOUR, shaping=Shaping.EMULAB)
    placement = place(plan, site)
    for assignment in assignments(plan, site, placement, 1).values():
        for wiring in make_layout(plan, assignment).wirings:
            if wiring.name in {tunnel.link for tunnel in assignment.tunnels}:
                assert list(wiring.parameters.values()) == [LinkParameters()]
        changes = assigned_part(plan, assignment).changes
        assert all(
            change.parameters == LinkParameters() for change in changes if isinstance(change, LinkChange)
        )


def test_if_the_site_shapes_links_faults_on_delays_are_refused(plan: Plan) -> None:
    site = replace(FOUR, shaping=Shaping.EMULAB)
    slower = LinkChange(
        5_000_000, "slow", "r0-r1", LinkDirectionName.FORWARD, plan.changes[0].state, LinkParameters(80_000)
    )  # type: ignore[union-attr]
    with pytest.raises(InputError, match="the fault slow cannot change it: only cuts are possible"):
        adapted(replace(plan, changes=(slower,)), site, place(plan, site), 1600)


def test_a_share_survives_json(plan: Plan) -> None:
    for assignment in assignments(plan, FIVE, place(plan, FIVE), 1).values():
        assert assignment_from_json(assignment_to_json(assignment)) == assignment
