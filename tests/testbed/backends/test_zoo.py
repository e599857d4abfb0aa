"""`link-failure-zoo`, three seeds of each small topology: in a network that stays connected nothing is lost,
every stream flows again soon, and then no client changes its source.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.loader import read_experiment
from node.systems import build_machine
from tests.node.protocols.sprinkler.readings import Refreshing, with_sources
from tests.virtual_runs import missed, simulated, summary_of
from topologies.loader import load_topology

SHORTER = (  # fewer batches in less time, so that all take a minute
    "duration=11s", "nemesis.start=2s", "nemesis.quiet=7s", "parameters.flush_interval=200ms",
    "workload.rate=100/s",
)  # fmt: skip
ZOO = read_experiment("link-failure-zoo", SHORTER)
SEEDS = (1, 2, 3)
MANY_REGIONS = 8
"""From this number of regions on, one seed suffices: a run's cost grows with the square of its regions."""


Summary = dict[str, Any]
Run = Callable[..., Summary]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs the zoo in virtual time, on a topology and with a seed."""

    def run_one(name: str, seed: int, build=build_machine) -> Summary:
        experiment, topology = ZOO.point({"topology": name}), load_topology(name)
        return summary_of(simulated(experiment, tmp_path, seed=seed, topology=topology, build=build))

    return run_one


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO.experiment.sweep["topology"])
def test_every_stream_flows_again_and_at_rest_nobody_changes_a_source(run: Run, name: str) -> None:
    found = []
    for seed in SEEDS if len(load_topology(name).regions) < MANY_REGIONS else SEEDS[:1]:
        summary = run(name, seed)
        assert (seed, missed(summary), summary["verdict"]) == (seed, [], "passed")
        assert summary["convergence"]["connected"]
        assert summary["events"]["delivered"] > 0
        found.append(summary["convergence"]["beyond_way_s"])
    assert max(found) <= 2.5  # medians are the experiment's matter, which has 50 seeds
    assert min(found) <= 1.5


@pytest.mark.slow
def test_the_zoo_shows_a_rule_by_which_two_proxies_hold_each_other(run: Run) -> None:
    build = with_sources(Refreshing)
    assert any("convergence.stalled == 0" in missed(run("ring-6", seed, build)) for seed in SEEDS)
