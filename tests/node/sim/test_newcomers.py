"""Unannounced clients join a region: only gossip finds them, by the addresses in views."""

from dataclasses import replace

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.sim.sim_network import SimulatedNetwork
from node.systems import build_machine
from tests.node.cluster import COARSE, MESH, S, specs

NEW = ("r0/client-4", "r0/client-5")
SMALL = {**COARSE, "view_size": 8, "gossip_period_us": 200_000}


def network():
    """Return a region of four clients, and two clients that are not started and know only themselves."""
    told = specs(regions=1, clients=6, rate_per_s=1000, parameters=SMALL)
    made = []
    for spec in told:
        members = tuple(each for each in spec.members if each.name not in NEW or each.name == spec.name)
        made.append(replace(spec, members=members))
    found = SimulatedNetwork(made, MESH, build=build_machine, start=False)
    for spec in made:
        if spec.name not in NEW:
            found.start(spec.name)
    found.run(S // 2)
    found.broadcast(m.Go(S))
    return found


def neighbours(found, name):
    part = found.nodes[name].machine.dissemination
    return {part.member(each).name for each in part.view.members}


def test_newcomers_get_every_event_and_become_neighbours():
    found = network()
    found.run(3 * S)
    for name in NEW:
        found.start(name)
    found.run(8 * S)
    others = [f"r0/client-{at}" for at in range(4)]
    assert NEW[1] in neighbours(found, NEW[0])
    assert NEW[0] in neighbours(found, NEW[1])
    for name in NEW:
        assert any(name in neighbours(found, other) for other in others), f"{name} was passed on"
        assert set(others) & neighbours(found, name)
        came = {peer for other in others for peer in found.nodes[other].machine.channels}
        assert name in came, "others are connected with it"
    found.broadcast(m.StopDrivers())
    found.run(10 * S)
    counts = {name: len(rows(found, name)) for name in (*others, *NEW)}
    assert len(set(counts.values())) == 1, counts
    assert rows(found, NEW[0]) == rows(found, others[0])
    assert sum(count for _, count in rows(found, NEW[0])) > 6000


def rows(found, name):
    records = [record for _, record in found.nodes[name].records if record.kind == RecordKind.DELIVERED]
    return [(record.first_seq, record.count) for record in records]
