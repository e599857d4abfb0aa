"""A wrong time stamp, or a wrong time 0, is reported, and affects neither memory nor other figures."""

import json
import os
import resource
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.pipeline import analyze_here
from analysis.timelines.run_window import LENGTH_NS_MAX, MARGIN_NS, window_of
from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from tests.analysis.timelines.captured import write_run
from tests.analysis.timelines.world import END, ZERO, S, run_json, simulate

pytestmark = pytest.mark.slow

DAY = 86_400 * S
YEAR = 365 * DAY
MEMORY_BYTES_MAX = 600 << 20
"""Memory limit of a complete analysis, half of it for imports; a row per bin of a month would take
gigabytes.
"""
PEAK = (
    "import pathlib, re, resource;"
    "own = int(re.search(r'VmHWM:\\s+(\\d+)', pathlib.Path('/proc/self/status').read_text())[1]);"
    "print(max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))"
)
"""Prints the most memory in KiB. getrusage of itself would count its parent's, before exec(3)."""
PROJECT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """Return a run without analysis."""
    content = run_json()
    return write_run(tmp_path_factory.mktemp("runs") / "a-run", simulate(), content, [])


def copied(captured: RunDirectory, folder: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(captured.path, folder))


def analyze_all(commands: list[tuple[str, RunDirectory]]) -> None:
    """Run commands in one Python process with the memory of a single analysis."""
    words = [(command, str(run.path)) for command, run in commands]
    main = f"from testbed.cli.main import run; [run(list(each)) for each in {words}]; {PEAK}"
    done = subprocess.run(
        [sys.executable, "-P", "-c", main],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30)),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert all(run.summary_json.is_file() for _, run in commands), done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) << 10 < MEMORY_BYTES_MAX


def misdate(capture: Path, number: int, by_ns: int) -> None:
    """Give one packet of a capture another time."""
    data, at = bytearray(capture.read_bytes()), 24
    for _ in range(number):
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
    seconds, rest = struct.unpack_from("<II", data, at)
    struct.pack_into("<I", data, at, (seconds * S + rest + by_ns) // S)
    capture.write_bytes(data)


def set_times(run: RunDirectory, **times: int) -> None:
    content = read_json(run.run_json)
    run.run_json.write_text(json.dumps(content | {"times": content["times"] | times}))


def misdate_some(run: RunDirectory) -> None:
    """Give three packets other times."""
    misdate(run.capture("r0-client-0-eth0.pcap"), 500, 30 * DAY)
    misdate(run.capture("r1-client-0-eth0.pcap"), 500, -30 * DAY)
    misdate(run.capture("r0-r1@r1.pcap"), 500, 30 * DAY)


def set_long_before(run: RunDirectory) -> None:
    """Set time 0 years before, and the times of faults many years before."""
    set_times(run, zero_ns=ZERO - 3 * YEAR)
    content = read_json(run.run_json)
    for change in content["changes"]:
        change["applied_ns"] -= 20 * YEAR
    run.run_json.write_text(json.dumps(content))


WRONG = {
    "packets": misdate_some,
    "long before": set_long_before,
    "long after": lambda run: set_times(run, zero_ns=ZERO + 3 * YEAR),
}


@pytest.fixture(scope="module")
def analyzed(captured, tmp_path_factory):
    """Return a run for each defect, analysed by `cutset analyze`. Tests must not change it."""
    folder = tmp_path_factory.mktemp("wrong")
    runs = {name: copied(captured, folder / name.replace(" ", "-")) for name in WRONG}
    for name, run in runs.items():
        WRONG[name](run)
    reported = [("report", runs["long after"])]
    analyze_all([("analyze", run) for run in runs.values()] + reported)
    return runs


def test_misdated_packets_at_clients_are_named_and_change_no_figure(analyzed):
    run = analyzed["packets"]
    summary = run.read_summary()
    [note] = [note for note in summary["fidelity"]["notes"] if "messages of" in note]
    assert note == (
        "2 messages of r0-client-0 (1 of 2800), r1-client-0 (1 of 2800) have times outside the run, "
        "up to 30 days after its end and up to 30 days before its start: "
        "excluded from measurements over time"
    )
    assert any("1 packets of r0-r1@r1" in note for note in summary["fidelity"]["notes"])
    assert summary["fidelity"]["valid"]
    assert summary["verdict"] == "passed" or summary["recovery"]["cut"]["lost"] == 0
    assert summary["latency"]["max_ms"] == 1000.0
    assert summary["events"]["lost"] == 0
    assert summary["agreement"]["held"]
    throughput = pq.read_table(run.table("throughput")).column("start_s").to_numpy()
    assert throughput.max() < END / S + 1
    assert throughput.min() == 0
    assert pq.read_table(run.table("latency")).column("start_s").to_numpy().max() < END / S


@pytest.mark.parametrize(
    ("name", "where"), [("long before", "before the run started"), ("long after", "after the run ended")]
)
def test_a_wrong_time_0_makes_the_run_invalid_with_a_reason(analyzed, name, where):
    run = analyzed[name]
    summary = run.read_summary()
    [reason] = [text for text in summary["fidelity"]["reasons"] if "time 0" in text]
    assert reason == f"time 0 lies 3 years {where}: nothing can be measured by it"
    assert summary["verdict"] == "invalid"
    assert summary["throughput"]["events_per_s"] is None
    assert run.report_html.is_file()


def test_a_run_without_any_times_is_analysed(captured, tmp_path):
    run = copied(captured, tmp_path / "a-run")
    content = read_json(run.run_json)
    run.run_json.write_text(json.dumps(content | {"times": {}}))
    summary = analyze_here(run, progress=lambda _: None)
    assert any("messages of" in note and "outside the run" in note for note in summary["fidelity"]["notes"])


def test_the_window_reaches_from_the_start_to_the_end_and_a_margin():
    window = window_of(ZERO, ZERO - 3 * S, ZERO + END)
    assert (window.first_ns, window.end_ns) == (ZERO - 3 * S - MARGIN_NS, ZERO + END + MARGIN_NS)
    times = np.array([-64 * S, 0, END + 59 * S, END + 60 * S])
    assert window.holds(ZERO + times).tolist() == [False, True, True, False]


def test_the_window_of_a_run_whose_end_is_not_known_is_bounded():
    window = window_of(ZERO, None, None)
    assert window.problem is None
    assert window.end_ns == ZERO + LENGTH_NS_MAX + MARGIN_NS
    assert window_of(ZERO, ZERO, ZERO + 50 * YEAR).end_ns == ZERO + LENGTH_NS_MAX + MARGIN_NS
