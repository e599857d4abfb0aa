"""Defects that hunts found stay fixed; each file of `found/` is the experiment that showed one."""

from pathlib import Path

import pytest

from experiments.loader import read_experiment
from testbed.backends.in_memory import simulate_in_memory
from testbed.campaign.hunting.oracle import judge
from testbed.planning import make_plan
from topologies.loader import load_topology

FOUND = sorted((Path(__file__).parent / "found").glob("*.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_found_defects_stay_fixed(path: Path):
    experiment = read_experiment(str(path), []).experiment
    plan = make_plan(experiment, load_topology(experiment.topology), seed=experiment.seed, links_kind="auto")
    run = simulate_in_memory(plan, {"experiment": experiment.to_json(), "topology": {}})
    assert judge(run).violations == ()
