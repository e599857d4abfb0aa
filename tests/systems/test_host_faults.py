"""Programs with wrong clocks, full or slow disks, little processor time or memory: effects of these
faults.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from node.core.deliveries import read_records
from node.programs.faked_clock import why_not_faked
from testbed.cli import main
from tests.systems.on_packets import output, run_on_packets

HEAD = """\
name: host-faults
topology: one-region
system: ./host_faults
roles: {ROLES, publisher: 1}
workload: {event_size: 100B, rate: 10/s}
duration: 6s
captures: none
faults:
"""
CLOCKS = """\
  - {name: forward, at: 1s, for: 3s, clock: r0/python-0, offset: 3s}
  - {name: back, at: 1s, clock: r0/javascript-0, offset: -2s}
  - {name: fast, at: 1s, for: 4s, clock: r0/c-0, drift: 400000ppm}
  - {name: far, at: 1s, clock: r0/publisher-0, offset: 100s}
  - {at: 3s, kill: r0/javascript-0}
  - {at: 3200ms, restart: r0/javascript-0}
"""
DISK = """\
  - {name: full, at: 500ms, fill: r0/writer-0}
  - {name: end, at: 1s, kill: r0/writer-0}
  - {name: again, at: 1200ms, restart: r0/writer-0}
  - {name: room, at: 3s, restore: full}
  - {name: refill, at: 3500ms, fill: r0/writer-0}
  - {name: loss, at: 4s, kill: r0/writer-0}
  - {name: new, at: 4200ms, replace: r0/writer-0}
"""
SLOW = """\
  - {name: slow, at: 1s, slow-disk: r0/waiter-0, sync: 2s}
  - {at: 2s, kill: r0/waiter-0}
  - {at: 2200ms, restart: r0/waiter-0}
  - {at: 4s, restore: slow}
"""
THROTTLES = """\
  - {name: slow, at: 200ms, for: 2s, throttle: r0/worker-0, cpu: 20%}
  - {name: slower, at: 1200ms, throttle: r0/worker-0, cpu: 5%}
  - {name: tight, at: 200ms, throttle: r0/hoarder-0, cpu: 50%, memory: 100MB}
  - {name: again, at: 1800ms, restart: r0/hoarder-0}
"""
JITTER_S = 0.3  # from when a clock is read until its line is logged


def with_roles(*roles: str) -> str:
    return HEAD.replace("ROLES", ", ".join(f"{role}: 1" for role in roles))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(Path(__file__).parent / "host_faults", tmp_path / "host_faults")
    return tmp_path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    folder = tmp_path_factory.mktemp("host-faults")
    shutil.copytree(Path(__file__).parent / "host_faults", folder / "host_faults")
    roles = with_roles("python", "javascript", "c", "writer", "waiter")
    return run_on_packets(folder, roles + CLOCKS + DISK + SLOW)


def ahead(run: RunDirectory, host: str, at_s: float) -> float:
    """Return how far a program's clock was ahead at this time of the run: its last line, by the log's
    time.
    """
    zero_ns = run.read_run().times.zero_ns
    assert zero_ns is not None
    lines = [json.loads(line) for line in run.log(host).read_text().splitlines()]
    said = [line for line in lines if line["event"] == "output" and line["t_ns"] < zero_ns + at_s * 1e9]
    return float(said[-1]["text"]) - said[-1]["t_ns"] / 1e9


def actions_on(run: RunDirectory, process: str) -> list[str]:
    """Return the actions on a process, in order; all of them took effect."""
    carried = [each for each in run.read_run().changes_applied if each[0].process == process]
    assert all(applied.applied_ns is not None for _, applied in carried)
    return [str(change.action) for change, _ in carried]


@pytest.mark.network
@pytest.mark.slow
class TestRun:
    def test_clocks_are_wrong_while_a_fault_lasts_and_records_are_true(self, run: RunDirectory) -> None:
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

    def test_a_program_on_a_full_disk_gets_errors_until_there_is_room(self, run: RunDirectory) -> None:
        assert output(run, "r0-writer-0") == [
            *("an empty disk", "4 MB free", "written", "ENOSPC"),
            *("earlier pages", "0 MB free", "ENOSPC", "written", "ENOSPC"),
            *("an empty disk", "4 MB free", "written"),
        ]
        assert actions_on(run, "r0/writer-0") == [
            *("fill", "kill", "restart", "unfill", "fill", "kill", "replace", "unfill")
        ]

    def test_a_program_waits_for_its_slow_disk_also_after_a_restart(self, run: RunDirectory) -> None:
        assert output(run, "r0-waiter-0") == ["at once", "waited", "at once"]
        assert actions_on(run, "r0/waiter-0") == ["slow-disk", "kill", "restart", "unslow-disk"]


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="control groups need root")
def test_limits_are_enforced_and_a_lack_of_memory_ends_a_program(folder: Path) -> None:
    text = with_roles("worker", "hoarder").replace("duration: 6s", "duration: 2500ms")
    run = run_on_packets(folder, text + THROTTLES)
    record = run.read_run()
    of_worker = [each for each in record.throttles if each.process == "r0/worker-0"]
    assert [each.processor for each in of_worker] == [0.2, 0.05, 0.05]
    for each in of_worker[:2]:  # the last one includes the end of the run
        assert each.processor is not None
        used = each.processor_s * 1e9 / (each.to_ns - each.from_ns)
        assert each.processor / 2 < used < each.processor * 1.05 + 0.02
    [of_hoarder] = (each for each in record.throttles if each.process == "r0/hoarder-0")
    assert of_hoarder.killed >= 1
    first, *_ = (each.exit for each in record.processes if each.name == "r0/hoarder-0")
    assert first is not None
    assert (first.expected, first.starved) == (True, True)
    assert record.problems == ()
    assert "more memory than its limit" in run.report_html.read_text()


def fault(text: str) -> str:
    return f"  - {{at: 1s, {text}}}\n"


FILL = fault("name: full, fill: r0/writer-0")


@pytest.mark.parametrize(
    ("faults", "problem"),
    [
        (fault("throttle: r0/worker-0, cpu: 20%"), ""),
        (fault("throttle: r0/worker-0"), "faults.0.throttle: limits nothing: give cpu, such as 20%, or"),
        (fault("throttle: r0/worker-0, cpu: 0%"), "faults.0.cpu: should be greater than or equal to 0.01"),
        (fault("throttle: r0/worker-0, cpu: 150%"), "faults.0.cpu: 150% is more than 100%"),
        (fault("throttle: r0/worker-0, memory: 10kB"), "faults.0.memory: should be greater than or equal to"),
        (FILL + fault("restore: full"), ""),
        (fault("fill: r0/worker-0"), "faults.0.fill: worker has no file system of its own: give it `limits"),
        (fault("fill: r0/writer-1"), "faults.0.fill: there is no process r0/writer-1"),
        (FILL + fault("restore: flul"), "faults.1.restore: no fault"),
        (FILL + "  - {at: 2s, restart: r0/writer-0}\n", ""),  # it may have ended of it
        ("  - {at: 2s, restart: r0/writer-0}\n", "faults.0.restart: no kill or leave of r0/writer-0 comes"),
    ],
)
def test_faults_of_hosts_are_checked(folder: Path, capsys, faults: str, problem: str) -> None:
    (folder / "experiment.yaml").write_text(with_roles("worker", "writer") + faults)
    assert main.run(["plan", str(folder / "experiment.yaml")]) == (2 if problem else 0)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == bool(problem)
    assert problem in "".join(said)


def test_virtual_time_refuses_throttles(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "experiment.yaml"
    text = with_roles("proxy", "driver", "client").replace("./host_faults", "sprinkler")
    file.write_text(text.replace(", publisher: 1", "") + fault("throttle: r0/proxy-0, cpu: 20%"))
    assert main.run(["run", str(file), "--on", "simulator", "--out", str(folder / "runs")]) == 2
    assert "nodes in virtual time take no processor time" in capsys.readouterr().err
    assert not (folder / "runs").exists()


@pytest.mark.skipif(shutil.which("nats-server") is None, reason="nats-server is not here")
def test_a_go_program_cannot_have_a_wrong_clock(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "go.yaml").write_text(with_roles("go") + fault("clock: r0/go-0, offset: 3s"))
    assert main.run(["run", str(folder / "go.yaml"), "--out", str(folder / "runs")]) == 3
    [line] = capsys.readouterr().err.splitlines()
    assert "the clock of r0/go-0 cannot be made wrong: " in line
    assert "nats-server is a Go program, which reads the clock without the C library" in line


def test_scripts_that_start_a_program_are_examined(tmp_path: Path) -> None:
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
