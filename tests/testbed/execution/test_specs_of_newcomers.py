"""Processes that join later are unknown to running ones, and know themselves."""

from pathlib import Path

from experiments.records.rundir import RunDirectory
from testbed.execution.specs import node_specs
from tests.plans import plan_of
from tests.virtual_runs import experiment_in

EXPERIMENT = """
topology: one-region
roles: {proxy: 2, driver: 1, client: 2, configuration: 1}
workload: {event_size: 10B, rate: 1000/s}
duration: 3s
faults:
  - {name: new, at: 1s, join: r0/client-1}
  - {name: replica, at: 1s, join: r0/proxy-1}
"""


def test_only_a_joining_client_is_unknown_to_the_others(tmp_path):
    plan = plan_of(experiment_in(tmp_path, EXPERIMENT))
    specs = node_specs(plan, plan.processes, RunDirectory(Path(tmp_path)), lambda host: "")
    known = {name: {member["name"] for member in spec["members"]} for name, spec in specs.items()}
    everyone = {process.name for process in plan.processes}
    assert known.pop("r0/client-1") == everyone
    assert all(names == everyone - {"r0/client-1"} for names in known.values())
