"""A packet with a wrong time stamp, or a wrong time 0, costs no memory and falsifies nothing: it is named."""

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

from analysis.pipeline import analyze
from analysis.timelines.run_window import LENGTH_NS_MAX, MARGIN_NS, window_of
from experiments.json_files import read_json
from experiments.rundir import RunDirectory
from tests.analysis.timelines.captured import write_run
from tests.analysis.timelines.world import END, ZERO, S, run_json, simulate

DAY = 86_400 * S
YEAR = 365 * DAY
MEMORY_BYTES_MAX = 600 << 20
"""Of a whole analysis, half of which is what it imports; a row for each bin of a month takes gigabytes."""
PEAK = (
    "import pathlib, re, resource;"
    "own = int(re.search(r'VmHWM:\\s+(\\d+)', pathlib.Path('/proc/self/status').read_text())[1]);"
    "print(max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))"
)
"""Prints the most memory in KiB. getrusage of itself would count its parent's, before exec(3)."""
PROJECT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """A run that was not analysed."""
    content = run_json()
    return write_run(tmp_path_factory.mktemp("runs") / "a-run", simulate(), content, [])


@pytest.fixture
def run(captured, tmp_path):
    return RunDirectory(shutil.copytree(captured.path, tmp_path / "a-run"))


def analyzed(run: RunDirectory, *commands: str) -> dict:
    """The summary, as `cutset analyze` makes it in as much memory as it may take; other commands follow."""
    words = f"[run([word, {str(run.path)!r}]) for word in {('analyze', *commands)}]"
    main = f"from testbed.cli.main import run; {words}; {PEAK}"
    done = subprocess.run(
        [sys.executable, "-P", "-c", main],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.summary_json.is_file(), done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) << 10 < MEMORY_BYTES_MAX
    return run.read_summary()


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


@pytest.mark.parametrize("by_ns", [30 * DAY, -30 * DAY])
def test_one_misdated_packet_at_a_client_is_named_and_changes_no_figure(run, captured, by_ns):
    misdate(run.capture("r0-client-0-eth0.pcap"), 500, by_ns)
    summary = analyzed(run)
    [note] = [note for note in summary["fidelity"]["notes"] if "outside the run" in note]
    assert note.startswith("1 messages of r0-client-0 (1 of ")
    assert ("after its end" if by_ns > 0 else "before its start") in note
    assert summary["fidelity"]["valid"]
    assert summary["verdict"] == "passed" or summary["recovery"]["cut"]["lost"] == 0
    assert summary["latency"]["max_ms"] == 1000.0
    assert summary["events"]["lost"] == 0
    assert summary["agreement"]["held"]
    throughput = pq.read_table(run.table("throughput")).column("start_s").to_numpy()
    assert throughput.max() < END / S + 1
    assert throughput.min() == 0
    assert pq.read_table(run.table("latency")).column("start_s").to_numpy().max() < END / S


def test_one_misdated_packet_on_a_link_is_named(run):
    misdate(run.capture("r0-r1@r1.pcap"), 500, 30 * DAY)
    summary = analyzed(run)
    assert any("1 packets of r0-r1@r1" in note for note in summary["fidelity"]["notes"])
    assert pq.read_table(run.table("throughput")).column("start_s").to_numpy().max() < END / S + 1


@pytest.mark.parametrize(
    ("by_ns", "where"), [(-3 * YEAR, "before the run started"), (3 * YEAR, "after the run ended")]
)
def test_a_wrong_time_0_makes_the_run_invalid_and_says_so(run, by_ns, where):
    set_times(run, zero_ns=ZERO + by_ns)
    summary = analyzed(run, "report")
    [reason] = [text for text in summary["fidelity"]["reasons"] if "time 0" in text]
    assert reason == f"time 0 lies 3 years {where}: nothing can be measured by it"
    assert summary["verdict"] == "invalid"
    assert summary["throughput"]["events_per_s"] is None
    assert run.report_html.is_file()


def test_a_run_without_any_times_is_analysed(run):
    content = read_json(run.run_json)
    run.run_json.write_text(json.dumps(content | {"times": {}}))
    summary = analyze(run, progress=lambda _: None)
    assert any("messages of" in note and "outside the run" in note for note in summary["fidelity"]["notes"])


def test_a_fault_that_took_hold_in_another_year_costs_nothing(run):
    content = read_json(run.run_json)
    for change in content["changes"]:
        change["applied_ns"] -= 20 * YEAR
    run.run_json.write_text(json.dumps(content))
    analyzed(run)


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
