"""Runs with shifted clocks give the same analysis as runs with one clock."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.capture.clocks.clocks_file import read_machines
from analysis.capture.clocks.machine_clocks import read_on_reference
from analysis.capture.time_range import TimeRange
from analysis.inspect.packets.lines import Lines
from analysis.jobs.transfers import read as read_transfers
from analysis.pages.report import write_report
from analysis.pipeline import analyze_here
from analysis.taps.run_captures import captures_of
from analysis.timelines.run_metadata import read_metadata
from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from tests.analysis.capture.clocks.skewing import Offset, set_apart
from tests.analysis.timelines.captured import SUBSCRIBED, write_run
from tests.analysis.timelines.world import LAN, MS, ZERO, S, hop_ns, run_json, simulate

pytestmark = pytest.mark.slow

APART: Mapping[str, Offset] = {
    "r0": lambda t_ns: 0 * t_ns,
    "r1": lambda t_ns: 50e-6 * (t_ns - ZERO) - 2 * MS,
    "r2": lambda t_ns: 0 * t_ns + 3_600 * S,
    "r3": lambda t_ns: -20e-6 * (t_ns - ZERO) + np.where(t_ns < ZERO + 3 * S, 0, 30 * MS),
}
BAR_MS = 0.15
US = 1_000


def analysed(run: RunDirectory) -> dict[str, Any]:
    return analyze_here(run, progress=lambda _: None)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Return an analysed run on one machine."""
    content = run_json()
    hosts = {process["name"]: process["host"] for process in content["plan"]["processes"]}
    content["processes"] = [one | {"host": hosts[one["name"]]} for one in content["processes"]]
    run = write_run(tmp_path_factory.mktemp("plain") / "a-run", simulate(), content, SUBSCRIBED)
    analysed(run)
    return run


@pytest.fixture(scope="module")
def apart(plain: RunDirectory, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Return the same run on four machines with different clocks, analysed."""
    run = copied(plain, tmp_path_factory.mktemp("apart"))
    set_apart(run, APART)
    analysed(run)
    return run


def copied(run: RunDirectory, to: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(run.path, to / "a-run", ignore=shutil.ignore_patterns("analysis")))


def rows(run: RunDirectory, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(run.table(table)).to_pylist()
    return found


def test_shifted_clocks_change_neither_validity_nor_events(plain: RunDirectory, apart: RunDirectory) -> None:
    one, several = plain.read_summary(), apart.read_summary()
    assert several["fidelity"]["valid"], several["fidelity"]["reasons"]
    for key in ("verdict", "events", "agreement", "throughput"):
        assert several[key] == one[key], key


def test_latency_is_the_same_within_its_error_bound(plain: RunDirectory, apart: RunDirectory) -> None:
    one, several = plain.read_summary()["latency"], apart.read_summary()["latency"]
    assert 0 < several["error_ms"] < BAR_MS
    for name in ("mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms"):
        assert abs(several[name] - one[name]) <= several["error_max_ms"], name
    assert abs(several["p50_ms"] - one["p50_ms"]) <= several["error_ms"]


def test_every_latency_bin_has_an_error_bound_that_contains_the_true_value(
    plain: RunDirectory, apart: RunDirectory
) -> None:
    truth = {(row["origin"], round(row["start_s"], 3)): row for row in rows(plain, "latency")}
    compared = 0
    for row in rows(apart, "latency"):
        true = truth.get((row["origin"], round(row["start_s"], 3)))
        if true is not None and true["count"] == row["count"]:  # no batch fell into the bin beside
            compared += 1
            assert abs(row["max_ms"] - true["max_ms"]) <= row["error_ms"] + 1e-3
    assert compared > 0.8 * len(truth)


def test_recovery_is_the_same_within_its_error_bound(plain: RunDirectory, apart: RunDirectory) -> None:
    one, several = plain.read_summary()["recovery"], apart.read_summary()["recovery"]
    for fault in ("cut", "restore"):
        assert 0 < several[fault]["error_s"] < BAR_MS / 1e3
        for name in ("detect_s", "resubscribe_s", "switch_s", "catch_up_s", "settled_s"):
            assert several[fault][name] == pytest.approx(
                one[fault][name], abs=several[fault]["error_s"] + 1e-6
            )


def test_links_are_measured_with_error_bounds(apart: RunDirectory) -> None:
    measured = [row for row in rows(apart, "fidelity") if row["delay_p50_ms"] is not None]
    assert {row["link"] for row in measured} == {"r0-r1", "r0-r2", "r0-r3", "r1-r2", "r1-r3", "r2-r3"}
    for row in measured:
        assert abs(row["delay_p50_ms"] - row["configured_delay_ms"]) <= row["error_ms"] < BAR_MS


def test_one_clock_has_no_error_bounds(plain: RunDirectory) -> None:
    assert not plain.clocks.exists()
    summary = plain.read_summary()
    assert "clocks" not in summary
    assert "error_ms" not in summary["latency"]
    assert {row["error_ms"] for table in ("latency", "fidelity") for row in rows(plain, table)} == {None}


def test_clocks_json_has_the_clocks_with_their_evidence(apart: RunDirectory) -> None:
    details = {each["machine"]: each for each in read_machines(apart)}
    assert [each["source"] for each in details.values()] == ["reference", "packets", "packets", "packets"]
    (stretch,) = details["r1"]["stretches"]
    assert stretch["drift_ppm"] == pytest.approx(50, abs=1)
    assert details["r2"]["stretches"][0]["offset_ns"] == pytest.approx(3_600 * S, abs=BAR_MS * MS)
    assert details["r1"]["seen_there"] > 100


def test_a_clock_that_was_set_is_reported(apart: RunDirectory) -> None:
    said = [note for note in apart.read_summary()["fidelity"]["notes"] if note.startswith("clock")]
    assert said == ["clock of r3: it was set ahead by 30.000 ms about 3.0 s"]


def test_delays_of_messages_have_error_bounds(apart: RunDirectory) -> None:
    metadata = read_metadata(*read_on_reference(apart))
    lines = Lines(metadata, TimeRange())
    table = read_transfers(apart, TimeRange(ZERO + S, ZERO + S + 200 * MS))
    said = {(row["sender"], row["receiver"]): lines.message(row) for row in table.to_pylist()}
    traversal, within = said["r1-proxy-0", "r2-proxy-0"], said["r1-driver-0", "r1-proxy-0"]
    assert "±0.0" in traversal
    assert "±" not in within
    delay_ms = float(traversal.split("±")[0].split()[-1])
    assert delay_ms == pytest.approx(hop_ns("r1", "r2") / MS, abs=BAR_MS)
    assert LAN == MS


def test_the_report_shows_clocks_and_error_bounds(apart: RunDirectory) -> None:
    page = write_report(apart).read_text()
    assert "All times on this page are by the clock of r0" in page
    assert "clocks measured them" in page


def test_a_time_range_by_the_runs_clock_selects_packets_in_every_capture(
    plain: RunDirectory, apart: RunDirectory
) -> None:
    times = TimeRange(ZERO + 2 * S + 500 * US, ZERO + 4 * S + 500 * US)
    counted = [
        {
            capture.name: sum(len(some["t_ns"]) for some in capture.packets(times, ("t_ns",)))
            for capture in captures_of(run)
            if not capture.name.endswith(".wire")
        }
        for run in (plain, apart)
    ]
    assert counted[0] == counted[1]
    assert sum(counted[0].values()) > 1_000


def test_without_packets_control_readings_are_used_and_contradictions_make_the_run_invalid(
    plain: RunDirectory, tmp_path: Path
) -> None:
    """One clock is unknown. One link's packets have equal stamps at both ends and so arrive too early."""
    run = copied(plain, tmp_path)
    set_apart(run, APART | {"r3": lambda t_ns: 0 * t_ns + 30 * MS}, wires=False)
    run.capture("r0-r3@r0.pcap").write_bytes(run.capture("r0-r3@r3.pcap").read_bytes())
    content = read_json(run.run_json)
    unknown = content["machines"][1]
    unknown["control_offset_ns"] = unknown["control_error_ns"] = None
    run.run_json.write_text(json.dumps(content))
    summary = analysed(run)
    fidelity = summary["fidelity"]
    said = [note.split(": ")[0] for note in fidelity["notes"] if "from the control connection alone" in note]
    assert said == ["clock of r2", "clock of r3"]
    assert {row["machine"]: row["from"] for row in summary["clocks"]} == {
        "r0": "reference", "r1": "nothing", "r2": "control", "r3": "control",
    }  # fmt: skip
    assert all(row["error_ms"] > 0.4 for row in summary["clocks"] if row["from"] == "control")
    assert summary["latency"]["error_ms"] > 0.8
    assert not fidelity["valid"]
    reasons = fidelity["reasons"]
    assert "the clock of r1 is unknown: no packets in both directions and no control reading" in reasons
    assert any("r0-r3" in reason and "beyond the clock error of" in reason for reason in reasons)


def test_without_one_capture_a_clock_is_estimated_over_another_machine(
    apart: RunDirectory, tmp_path: Path
) -> None:
    """Times of the first analysis are not corrected again."""
    run = RunDirectory(shutil.copytree(apart.path, tmp_path / "a-run"))
    run.capture("r0-r1@r0.wire.pcap").write_bytes(b"")
    run.capture("r0-r3@r3.wire.pcap").unlink()
    summary = analysed(run)
    assert summary["fidelity"]["valid"], summary["fidelity"]["reasons"]
    ways = {each["machine"]: len(each["way"]) for each in read_machines(run)}
    assert ways == {"r0": 1, "r1": 3, "r2": 2, "r3": 3}
    assert summary["latency"]["error_ms"] < 2 * BAR_MS
    assert summary["events"] == apart.read_summary()["events"]
