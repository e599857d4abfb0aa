"""A failed dial names the requested peer, whatever the name of the other process is."""

import pytest

from node.core import machine as m
from node.sim.sim_network import SimulatedNetwork
from tests.node.cluster import MESH, specs

PORT = 7000


class Dialler:
    """The first node dials the second one; both record their inputs."""

    frame_limit_bytes = 1 << 10

    def __init__(self, spec, rng):
        self.spec = spec
        self.told = []

    def handle(self, given, now_us):
        self.told.append(given)
        if not isinstance(given, m.Started):
            return []
        if self.spec.region == "r0":
            return [m.Connect("who was asked for", self.spec.members[1].address, PORT, 500_000)]
        return [m.Listen(PORT)]

    def progress(self):
        return m.NodeProgress()


@pytest.mark.parametrize("killed_us", [0, 10_000, 20_000, 25_000, 40_000])
def test_a_node_may_be_killed_while_it_is_being_dialled(killed_us):
    both = specs(regions=2, clients=0, drivers=0)
    network = SimulatedNetwork(both, MESH, build=Dialler)
    network.run(killed_us)
    network.kill(both[1].name)
    network.run(2_000_000)
    told = [each for each in network.nodes[both[0].name].machine.told if not isinstance(each, m.Started)]
    assert [each.peer for each in told if isinstance(each, (m.Connected, m.ConnectFailed))] == [
        "who was asked for"
    ]
    assert isinstance(told[0], m.ConnectFailed) == (killed_us < 30_000)
