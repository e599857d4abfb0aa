"""The same experiment on real processes and in virtual time has similar latencies."""

from pathlib import Path
from statistics import quantiles

import pytest

from experiments.records.rundir import RunDirectory
from node.core.deliveries import RecordKind, read_records
from testbed.pytest_plugin.fixture import Cutset
from tests.testbed.runner.live import TOPOLOGY, write_experiment

pytestmark = pytest.mark.network

SLOW = {"workload.rate": "40/s", "duration": "4s", "drain": "60s"}
NEAR_MS = 40.0
"""Half of the shortest way from one process to another: so no message may go a step more or a step less, but
real processes, unlike simulated ones, may wait for a processor.
"""


def latency_ms(run: RunDirectory, source: str, target: str) -> float:
    """Return the lower quartile, over batches, of the time from a driver's acknowledgement in one region to
    the delivery in another.

    A processor that delays a driver makes some times shorter, one that delays others makes them longer.
    """
    published, _ = read_records(run.host_deliveries(f"{source}-driver-0").read_bytes())
    delivered, _ = read_records(run.host_deliveries(f"{target}-client-0").read_bytes())
    at_ns = {
        (record.stream, record.first_seq): record.time_ns
        for record in delivered
        if record.kind == RecordKind.DELIVERED
    }
    batches = [record for record in published if record.kind == RecordKind.PUBLISHED]
    keys = [(record.stream, record.first_seq) for record in batches]
    found = [at_ns[key] - record.time_ns for key, record in zip(keys, batches, strict=True) if key in at_ns]
    assert len(found) > len(batches) / 2
    return quantiles(found)[0] / 1e6


def test_latencies_are_those_of_real_processes(cutset: Cutset, tmp_path: Path) -> None:
    experiment = write_experiment(tmp_path)
    far = TOPOLOGY.replace("delay: 1ms", "delay: 80ms").replace("delay: 5ms", "delay: 200ms")
    (tmp_path / "two-regions.yaml").write_text(far)
    [real] = cutset.run(experiment, on="local", set=SLOW, analyze=False).runs
    [virtual] = cutset.run(experiment, on="simulator", set=SLOW, analyze=False).runs
    for source, target in (("r0", "r0"), ("r0", "r1"), ("r1", "r0")):
        expected_ms = latency_ms(real.directory, source, target)
        assert latency_ms(virtual.directory, source, target) == pytest.approx(expected_ms, abs=NEAR_MS)
