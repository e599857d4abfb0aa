"""Random faults with `stays: connected`: links are lost permanently, and the others connect all regions."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.faults.links import CutFault, Flap
from experiments.loader import load_experiment
from experiments.model import Experiment
from experiments.nemesis import LosableLinks
from experiments.planned.changes import LinkState
from testbed.faults.timeline import link_changes
from tests.refusals import refusal
from tests.topologies.shipped import NAMES
from topologies.errors import InputError
from topologies.loader import load_topology
from topologies.model import Topology
from topologies.routes import connected

LINKED = [name for name in NAMES if load_topology(name).links]
WRITTEN = """
name: torn
topology: {topology}
system: sprinkler
roles: {{proxy: 1, driver: 1, client: 1, configuration: 1}}
workload: {{event_size: 10B, rate: 100/s}}
duration: 30s
faults: {faults}
nemesis:
  {{kinds: {kinds}, stays: connected, faults: {count}, start: 5s, quiet: 10s, shortest: 300ms, longest: 2s}}
""".lstrip()


@pytest.fixture
def load(tmp_path: Path, monkeypatch):
    """Return a function that loads an experiment on a topology."""
    monkeypatch.chdir(tmp_path)

    def load_text(
        topology: str,
        *,
        kinds: str = "[cut, one-way-cut, flap]",
        count: str = "{from: 1, to: 3}",
        faults: str = "[]",
    ) -> Experiment:
        Path("torn.yaml").write_text(
            WRITTEN.format(topology=topology, kinds=kinds, count=count, faults=faults)
        )
        return load_experiment("torn.yaml")

    return load_text


def left_in_the_end(experiment: Experiment, topology: Topology, seed: int) -> list[tuple[str, str]]:
    """Return the links that are up in both directions after the last change."""
    faults = experiment.all_faults(topology, seed)
    states = {}
    for change in link_changes(faults, topology, experiment.duration_us):
        states[change.link, change.direction] = change.state
        assert 5_000_000 <= change.at_us <= 20_000_000
    down = {link for (link, _), state in states.items() if state is not LinkState.UP}
    return [link.between for link in topology.links if link.name not in down]


@pytest.mark.parametrize("name", LINKED)
def test_every_shipped_topology_stays_connected(load, name):
    experiment, topology = load(name), load_topology(name)
    lost = 0
    for seed in range(10):
        left = left_in_the_end(experiment, topology, seed)
        assert connected(topology.regions, left)
        lost += len(topology.links) - len(left)
    assert (lost > 0) == (LosableLinks(topology).count_max > 0)


@given(seed=st.integers(0, 2**63))
def test_the_requested_number_of_links_is_lost_each_at_most_once(seed):
    topology = load_topology("grid-3x3")
    content = {
        "name": "x", "topology": "grid-3x3", "system": "sprinkler", "roles": {"proxy": 1, "driver": 1},
        "workload": {"event_size": "10B", "rate": "1/s"}, "duration": "30s",
        "nemesis": {"kinds": ["cut", "one-way-cut", "flap"], "stays": "connected",
                    "start": "5s", "quiet": "10s", "faults": {"from": 2, "to": 4}},
    }  # fmt: skip
    experiment = Experiment.model_validate(content)
    found = experiment.all_faults(topology, seed)
    assert 2 <= len(found) <= 4
    cut = [fault.link for fault in found if isinstance(fault, CutFault)]
    assert len(set(cut)) == len(cut)
    assert len(topology.links) - len(left_in_the_end(experiment, topology, seed)) == len(cut)
    assert all(isinstance(fault, (CutFault, Flap)) for fault in found)
    assert found == experiment.all_faults(topology, seed)


def test_all_kinds_and_counts_are_drawn(load):
    experiment, topology = load("mesh-4"), load_topology("mesh-4")
    drawn = [experiment.all_faults(topology, seed) for seed in range(60)]
    assert {len(faults) for faults in drawn} == {1, 2, 3}
    kinds = {fault.name.partition("-")[2] for faults in drawn for fault in faults}
    assert kinds == {"cut", "one-way-cut", "flap"}


def test_permanent_cuts_of_the_experiment_count_as_lost_links(load):
    experiment = load("ring-4", faults="[{at: 1s, cut: [r0, r1]}]")
    for seed in range(30):
        by_chance = experiment.all_faults(load_topology("ring-4"), seed)[1:]
        assert by_chance
        assert all(isinstance(fault, Flap) for fault in by_chance)


@pytest.mark.parametrize(
    ("topology", "changed", "said"),
    [
        ("line-5", {"kinds": "[cut, one-way-cut]"}, "line-5 cannot lose any link and stay connected, but"),
        ("ring-6", {"kinds": "[cut]", "count": "2"}, "ring-6 can lose 1 of its links and stay connected"),
        ("ring-6", {"faults": "[{at: 1s, isolate: r0}]"}, "ring-6 is not connected even without random"),
    ],
)  # fmt: skip
def test_an_impossible_draw_is_refused_in_one_line(load, topology, changed, said):
    assert refusal(load, topology, **changed).startswith(f"torn.yaml:9: nemesis.stays: {said}")


def test_a_reversed_range_is_refused(load):
    with pytest.raises(InputError, match=r"nemesis\.faults\.from: is more than `to`"):
        load("ring-6", count="{from: 3, to: 1}")
    with pytest.raises(InputError, match=r"nemesis\.faults: should be a number or a range, such as"):
        load("ring-6", count="many")
