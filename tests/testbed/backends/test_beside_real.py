"""The same experiment on real processes and in virtual time: what takes how long is alike."""

from pathlib import Path
from statistics import median

import pytest

from experiments.rundir import RunDirectory
from node.core.deliveries import RecordKind, read_records
from testbed.pytest_plugin.fixture import Cutset
from tests.testbed.runner.live import write_experiment

pytestmark = pytest.mark.network
NEAR_MS = 5.0  # half a flush interval: real processes take time to compute, simulated ones do not


def latency_ms(run: RunDirectory, source: str, target: str) -> float:
    """From a driver's acknowledgement in one region to the delivery in another, the median over batches."""
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
    return median(found) / 1e6


def test_latencies_are_those_of_real_processes(cutset: Cutset, tmp_path: Path) -> None:
    experiment = write_experiment(tmp_path)
    [real] = cutset.run(experiment, on="local", analyze=False).runs
    [virtual] = cutset.run(experiment, on="simulator", analyze=False).runs
    for source, target in (("r0", "r0"), ("r0", "r1"), ("r1", "r0")):
        expected_ms = latency_ms(real.directory, source, target)
        assert latency_ms(virtual.directory, source, target) == pytest.approx(expected_ms, abs=NEAR_MS)
