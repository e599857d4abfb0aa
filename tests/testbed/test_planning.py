"""Plans: placement of processes, captures, and dependence on the inputs alone."""

import json
from ipaddress import IPv4Address, IPv4Network

import pytest

from experiments.loader import load_experiment
from experiments.planned.plan import Plan, plan_from_json, plan_to_json
from testbed.planning import make_plan, process_seed
from tests.plans import plan_named
from topologies.errors import InputError
from topologies.loader import load_topology
from topologies.model import Topology

PLAIN = ("roles={proxy: 1, driver: 1, client: 2}", "workload.rate=20000/s")


def plan_of(*overrides: str, seed: int = 1, links: str = "auto") -> Plan:
    return plan_named("link-failure", *PLAIN, *overrides, seed=seed, links=links)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of()


def test_streams_are_a_number_per_region_or_a_list():
    listed = plan_of(
        "workload.streams=[{region: r2, name: prices, publishers: [r0, r1/driver-0]}, {region: r0}]"
    )
    assert [(each.number, each.region, each.name, each.publishers) for each in listed.streams] == [
        (0, "r2", "prices", ("r0", "r1/driver-0")),
        (1, "r0", "r0", ("r0",)),
    ]


def test_addresses_lie_in_their_networks_and_none_is_given_twice(plan):
    networks = {region.name: IPv4Network(region.subnet) for region in plan.regions}
    for host in plan.hosts:
        assert IPv4Address(host.address) in networks[host.region]
    wan = [link for link in plan.links if link.kind == "wan"]
    for link in wan:
        assert {link.a_address, link.b_address} == {str(host) for host in IPv4Network(link.subnet).hosts()}
    addresses = [host.address for host in plan.hosts] + [
        a for link in wan for a in (link.a_address, link.b_address)
    ]
    assert len(set(addresses)) == len(addresses)
    subnets = [*networks.values(), *(IPv4Network(link.subnet) for link in wan)]
    assert not any(a.overlaps(b) for n, a in enumerate(subnets) for b in subnets[n + 1 :])


def test_addresses_suffice_for_the_largest_topology():
    names = [f"r{number}" for number in range(250)]
    links = [{"between": ["r0", name], "delay": "1ms"} for name in names[1:]]
    topology = Topology.model_validate(
        {"name": "star", "regions": {name: {} for name in names}, "links": links}
    )
    experiment = load_experiment(
        "link-failure", ["faults=[]", "expect=[]", "roles={r0: {client: 300, proxy: 1}}"]
    )
    plan = make_plan(experiment, topology, seed=None, links_kind="relay")
    assert plan.regions[-1].subnet == "10.249.0.0/16"
    assert plan.hosts[300].address == "10.0.1.45"
    assert plan.links[248].subnet == "10.255.3.224/30"


def test_hosts_and_both_sides_of_links_are_captured(plan):
    files = [capture.file for capture in plan.captures]
    assert len(files) == len(set(files)) == 16 + 2 * 6
    assert {"r2-proxy-0-eth0.pcap", "r2-r3@r2.pcap", "r2-r3@r3.pcap"} <= set(files)
    assert not any("gw" in file for file in files)


def test_a_seed_reaches_every_process_and_each_has_its_own(plan):
    other = plan_of(seed=2)
    assert (plan.seed, other.seed) == (1, 2)
    seeds = {process.seed for process in plan.processes} | {process.seed for process in other.processes}
    assert len(seeds) == 2 * len(plan.processes)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_process_keeps_its_seed_when_others_are_added():
    """Check it, because otherwise a new client would change the random choices of every other process."""
    assert process_seed(1, "r0/proxy-0") == 1063675019314314279
    more = {process.name: process.seed for process in plan_of("roles.client=5").processes}
    for process in plan_of().processes:
        assert more[process.name] == process.seed


def test_a_plan_survives_json():
    plan = plan_of(
        "faults=[{name: cut, at: 9s, isolate: r2, mode: down, for: 3s}, {at: 20s, set: [r0, r1], loss: 0.1%},"
        " {at: 5s, kill: r2/proxy-0}]",
        "captures={snaplen: 128B}",
        "workload={event_size: 1kB, closed_loop: true}",
        links="relay",
    )
    assert plan_from_json(json.loads(json.dumps(plan_to_json(plan), allow_nan=False))) == plan


def test_hosts_of_two_regions_never_share_a_name(tmp_path):
    (tmp_path / "system.yaml").write_text(
        "name: crossed\nroles:\n"
        "  b-a: {traits: [subscriber], run: [sleep]}\n  a: {traits: [publisher], run: [sleep]}\n"
    )
    (tmp_path / "crossed.yaml").write_text(
        "name: crossed\nsystem: ./system.yaml\nroles: {b-a: 1, a: 1}\nduration: 10s\n"
        "topology: {regions: {a: {}, a-b: {}}, links: [{between: [a, a-b], delay: 1ms}]}\n"
        "workload: {event_size: 100B, rate: 1/s}\n"
    )
    experiment = load_experiment(str(tmp_path / "crossed.yaml"))
    with pytest.raises(InputError, match="two hosts would both be called a-b-a-0: rename a region"):
        make_plan(experiment, load_topology(experiment.topology), seed=None, links_kind="auto")


def test_names_missing_in_the_topology_are_bad_input():
    with pytest.raises(InputError, match=r"link-failure: faults\.0\.cut: three-regions has no region r3"):
        make_plan(
            load_experiment("link-failure"), load_topology("three-regions"), seed=None, links_kind="auto"
        )
