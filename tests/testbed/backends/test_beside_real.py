"""The same experiment on real processes and in virtual time: what takes how long is alike."""

import subprocess
from pathlib import Path
from statistics import median

import pytest

from node.core.deliveries import RecordKind, read_records
from tests.testbed.runner.live import CUTSET, PROJECT, write_experiment

pytestmark = pytest.mark.network
NEAR_MS = 5.0  # half a flush interval: real processes take time to compute, simulated ones do not


def run_on(place: str, folder: Path) -> Path:
    """The directory of a run of the tiny experiment."""
    folder.mkdir()
    arguments = [str(write_experiment(folder)), "--on", place, "--out", str(folder / "runs"), "--no-analyze"]
    subprocess.run([*CUTSET, "run", *arguments], cwd=PROJECT, check=True, timeout=120, capture_output=True)
    (run,) = (folder / "runs").iterdir()
    return run


def latency_ms(run: Path, source: str, target: str) -> float:
    """From a driver's acknowledgement in one region to the delivery in another, the median over batches."""
    published, _ = read_records((run / "deliveries" / f"{source}-driver-0.deliveries").read_bytes())
    delivered, _ = read_records((run / "deliveries" / f"{target}-client-0.deliveries").read_bytes())
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


def test_latencies_are_those_of_real_processes(tmp_path):
    real, virtual = run_on("local", tmp_path / "real"), run_on("simulator", tmp_path / "virtual")
    for source, target in (("r0", "r0"), ("r0", "r1"), ("r1", "r0")):
        expected_ms = latency_ms(real, source, target)
        assert latency_ms(virtual, source, target) == pytest.approx(expected_ms, abs=NEAR_MS)
