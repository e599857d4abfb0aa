"""`link-failure-zoo`, one seed of a topology of each kind: in a network that stays connected nothing is lost,
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
KINDS = ("ring-4", "ring-7", "line-5", "star-6", "grid-2x3", "tree-7", "cliques-2x3", "random-12-asymmetric")


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
@pytest.mark.parametrize("name", KINDS)
def test_every_stream_flows_again_and_at_rest_nobody_changes_a_source(run: Run, name: str) -> None:
    summary = run(name, SEEDS[0])
    assert (missed(summary), summary["verdict"]) == ([], "passed")
    assert summary["convergence"]["connected"]
    assert summary["events"]["delivered"] > 0
    assert summary["convergence"]["beyond_way_s"] <= 2.5  # medians are the experiment's matter


@pytest.mark.slow
def test_the_zoo_shows_a_rule_by_which_two_proxies_hold_each_other(run: Run) -> None:
    build = with_sources(Refreshing)
    assert any("convergence.stalled == 0" in missed(run("ring-6", seed, build)) for seed in SEEDS)
