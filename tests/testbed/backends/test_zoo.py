"""`link-failure-zoo` with one seed and a topology of each kind: in a network that stays connected no event is
lost, every stream soon flows again, and then no client changes its source.
"""

from pathlib import Path

import pytest

from experiments.loader import read_experiment
from tests.virtual_runs import missed, simulated, summary_of
from topologies.loader import load_topology

SHORTER = (  # fewer batches in less time
    "duration=11s", "nemesis.start=2s", "nemesis.quiet=7s", "parameters.flush_interval=250ms",
    "workload.rate=100/s",
)  # fmt: skip
ZOO = read_experiment("link-failure-zoo", SHORTER)
KINDS = ("ring-7", "line-5", "star-6", "cliques-2x3", "random-12-asymmetric")


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_stream_flows_again_and_sources_become_stable(name: str, tmp_path: Path) -> None:
    experiment, topology = ZOO.point({"topology": name}), load_topology(name)
    summary = summary_of(simulated(experiment, tmp_path, topology=topology))
    assert (missed(summary), summary["verdict"]) == ([], "passed")
    assert summary["convergence"]["connected"]
    assert summary["events"]["delivered"] > 0
    assert summary["convergence"]["beyond_way_s"] <= 2.5  # medians are the experiment's matter
