"""A link that is slow only for one process's packets, in virtual time."""

from pathlib import Path

import pytest

from testbed.links.abilities import check_virtual
from testbed.planning import make_plan
from tests.virtual_runs import experiment_in, simulated, summary_of
from topologies.errors import InputError
from topologies.loader import load_topology

EXPERIMENT = """
workload: {event_size: 10B, rate: 20/s}
duration: 3s
faults: [{at: 1s, for: 1500ms, set: [r0, r1], of: r0/PROCESS, delay: 400ms}]
expect: []
"""


def test_the_link_is_slow_for_connections_of_that_process_only(tmp_path: Path) -> None:
    latest_ms = {}
    for process in ("proxy-0", "client-0"):  # the client has no connection to the other region
        experiment = experiment_in(tmp_path, EXPERIMENT.replace("PROCESS", process))
        latest_ms[process] = summary_of(simulated(experiment, tmp_path))["latency"]["max_ms"]
    assert latest_ms["client-0"] < 400 <= latest_ms["proxy-0"] < 1_000


def test_selections_by_port_are_refused_in_virtual_time(tmp_path: Path) -> None:
    text = EXPERIMENT.replace("of: r0/PROCESS", "port: 7000")
    topology = load_topology("two-regions")
    plan = make_plan(experiment_in(tmp_path, text), topology, seed=1, links_kind="auto")
    with pytest.raises(InputError, match="selects packets of r0-r1 by port 7000, which links in"):
        check_virtual(plan)
