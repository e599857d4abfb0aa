"""Programs in several languages with wrong clocks, against the true time of their host's log."""

import json
import shutil
from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from node.core.deliveries import read_records
from node.programs.faked_clock import why_not_faked
from testbed.cli import main
from tests.systems.on_packets import run_on_packets

EXPERIMENT = """\
name: wrong-clocks
topology: one-region
system: ./clocks
roles: {python: 1, javascript: 1, c: 1, publisher: 1}
workload: {event_size: 100B, rate: 10/s}
duration: 6s
captures: none
faults:
  - {name: forward, at: 1s, for: 3s, clock: r0/python-0, offset: 3s}
  - {name: back, at: 1s, clock: r0/javascript-0, offset: -2s}
  - {name: fast, at: 1s, for: 4s, clock: r0/c-0, drift: 400000ppm}
  - {name: far, at: 1s, clock: r0/publisher-0, offset: 100s}
  - {name: end, at: 3s, kill: r0/javascript-0}
  - {name: again, at: 3200ms, restart: r0/javascript-0}
"""
JITTER_S = 0.3  # from when a clock is read until its line is logged


def ahead(run: RunDirectory, host: str, at_s: float) -> float:
    """How far a program's clock was ahead at this time of the run: its line before, by the log's time."""
    zero_ns = run.read_run().times.zero_ns
    assert zero_ns is not None
    lines = [json.loads(line) for line in run.log(host).read_text().splitlines()]
    said = [line for line in lines if line["event"] == "output" and line["t_ns"] < zero_ns + at_s * 1e9]
    return float(said[-1]["text"]) - said[-1]["t_ns"] / 1e9


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(Path(__file__).parent / "clocks", tmp_path / "clocks")
    return tmp_path


@pytest.mark.network
@pytest.mark.slow
def test_clocks_are_wrong_while_a_fault_lasts_and_records_are_true(folder: Path) -> None:
    run = run_on_packets(folder, EXPERIMENT)
    seen = {
        host: [ahead(run, f"r0-{host}-0", at_s) for at_s in (0.9, 2.5, 4.9, 5.8)]
        for host in ("python", "javascript", "c")
    }
    assert seen == {
        "python": pytest.approx([0, 3, 0, 0], abs=JITTER_S),
        "javascript": pytest.approx([0, -2, -2, -2], abs=JITTER_S),  # also when it is started again
        "c": pytest.approx([0, 0.6, 1.56, 0], abs=JITTER_S),
    }
    zero_ns = run.read_run().times.zero_ns
    records, _ = read_records(run.host_deliveries("r0-publisher-0").read_bytes())
    times = [(each.time_ns - zero_ns) / 1e9 for each in records if each.count]
    assert len(times) > 50
    assert all(-JITTER_S < time_s < 6 + JITTER_S for time_s in times)


def test_a_go_program_is_refused_before_the_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("nats-server") is None:
        pytest.skip("nats-server is not here")
    text = EXPERIMENT.partition("faults:")[0].replace("python: 1, javascript: 1, c: 1", "go: 1")
    (folder / "go.yaml").write_text(text + "faults: [{at: 1s, clock: r0/go-0, offset: 3s}]\n")
    assert main.run(["run", str(folder / "go.yaml"), "--out", str(folder / "runs")]) == 3
    [line] = capsys.readouterr().err.splitlines()
    assert "the clock of r0/go-0 cannot be made wrong: " in line
    assert "nats-server is a Go program, which reads the clock without the C library" in line


def test_what_starts_a_program_is_looked_through(tmp_path: Path) -> None:
    static = bytearray(Path("/bin/sh").resolve().read_bytes()[:4096])
    table, entry_bytes, count = (
        int.from_bytes(static[at : at + size], "little") for at, size in ((32, 8), (54, 2), (56, 2))
    )
    for at in range(table, table + count * entry_bytes, entry_bytes):
        if static[at : at + 4] == b"\3\0\0\0":  # the segment that names the loader
            static[at : at + 4] = bytes(4)
    (tmp_path / "static").write_bytes(static)
    (tmp_path / "script").write_text(f"#!/usr/bin/env -S {tmp_path}/inner -x\n")
    (tmp_path / "inner").write_text(f"#!{tmp_path}/static\n")
    (tmp_path / "fine").write_text("#!/bin/sh\n")
    for each in tmp_path.iterdir():
        each.chmod(0o755)
    for name in ("static", "inner", "script"):
        assert f"{tmp_path}/static is linked statically" in str(why_not_faked([name], str(tmp_path)))
    assert why_not_faked(["fine"], str(tmp_path)) is None
    assert why_not_faked(["absent"], str(tmp_path)) is None
