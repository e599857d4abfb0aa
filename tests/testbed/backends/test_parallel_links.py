"""Parallel links: each is cut separately, and only the one that carries packets matters."""

import pytest

from experiments.hunting.bounds import unsurvivable_reason
from experiments.hunting.case import HuntCase, HuntDisturbance
from experiments.hunting.case_experiment import experiment_of, hunt_base
from experiments.hunting.targets import hunt_targets
from experiments.nemesis import LosableLinks
from tests.virtual_runs import experiment_in, simulated, summary_of
from topologies.errors import InputError
from topologies.loader import load_topology

WRITTEN = """
topology:
  regions: {{r0: {{}}, r1: {{}}, r2: {{}}}}
  links:
    - {{between: [r0, r1], delay: 15ms}}
    - {{name: backup, between: [r1, r0], delay: 5ms, weight: 1}}
    - {{between: [r1, r2], delay: 10ms}}
    - {{between: [r0, r2], delay: 10ms}}
parameters: {{advertisement_period: 1s}}
roles: {{proxy: 1, driver: 1, client: 1, configuration: 1}}
workload: {{event_size: 10B, rate: 50/s}}
duration: 8s
faults: {faults}
nemesis: {{kinds: [cut], stays: connected, faults: {{from: 1, to: 2}}, start: 1s, quiet: 6s}}
"""


def test_only_a_cut_of_the_link_that_carries_packets_leaves_a_gap(tmp_path):
    faults = "[{name: idle, at: 1s, cut: backup, for: 1s}, {name: torn, at: 3s, cut: r0-r1, for: 2s}]"
    experiment = experiment_in(tmp_path, WRITTEN.format(faults=faults).partition("nemesis")[0])
    summary = summary_of(simulated(experiment, tmp_path))
    assert summary["events"]["lost"] == 0
    assert summary["recovery"]["idle"]["affected_pairs"] == 0
    assert summary["recovery"]["torn"]["affected_pairs"] > 0
    assert summary["recovery"]["torn"]["switch_s"] > 0.5


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ("[{at: 1s, cut: [r0, r1]}]", "faults.0.cut: 2 links join r0 and r1: name one of r0-r1, backup"),
        ("[{at: 1s, cut: back}]", "faults.0.cut: inline has no link back: known are r0-r1, backup"),
        (
            "[{at: 1s, name: backup, cut: [r0, r2]}, {at: 2s, restore: backup}]",
            "faults.1.restore: backup is the name of a fault and of a link: rename the fault",
        ),
    ],
)
def test_a_fault_names_one_link(tmp_path, faults, said):
    with pytest.raises(InputError) as refused:
        experiment_in(tmp_path, WRITTEN.format(faults=faults))
    assert said in str(refused.value)


def test_a_nemesis_loses_no_link_that_is_needed_and_names_parallel_ones(tmp_path):
    experiment = experiment_in(tmp_path, WRITTEN.format(faults="[]"))
    links = LosableLinks(load_topology(experiment.topology))
    (backup,) = [link for link in links.left if link.name == "backup"]
    links.lose(backup)
    assert links.connected
    assert [link.name for link in links.losable] == ["r0-r1", "r1-r2", "r0-r2"]
    links.lose(links.losable[0])
    assert not links.losable, "without r0-r1 no packet crosses between r0 and r1: backup carries none"
    topology = load_topology(experiment.topology)
    cut = {fault.target for seed in range(20) for fault in experiment.all_faults(topology, seed)}
    assert cut == {"r0-r1", "backup", "r1-r2", "r0-r2"}


def test_a_hunt_cuts_a_parallel_link_by_its_name(tmp_path):
    experiment = experiment_in(tmp_path, WRITTEN.format(faults="[]"))
    targets = hunt_targets(hunt_base(experiment), {}, experiment.nemesis)
    assert targets.links[:2] == (("r0", "r1", "r0-r1"), ("r1", "r0", "backup"))
    cuts = [HuntDisturbance("sever", 1_000_000 + n, 0, link) for n, link in enumerate(targets.links)]
    assert unsurvivable_reason([cuts[1], cuts[2]], targets) is None
    reason = unsurvivable_reason([cuts[0], cuts[2]], targets)
    assert reason == "regions are cut off from each other permanently"
    case = HuntCase(1, {}, (cuts[1],))
    assert [fault.target for fault in experiment_of(targets.experiment, case, targets.topology).faults] == [
        "backup"
    ]
