"""Runs that are killed, stopped, or lack a resource report it, keep their results, and leave nothing
behind.
"""

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.child_python import python_command
from tests.testbed.leftovers import process_running, wait_until
from tests.testbed.runner.live import CUT_FOR_GOOD, PID_1, RELAY, UNSHARE, LiveRun

pytestmark = pytest.mark.network

LAUNCHER = tuple(python_command("node.tcp.launcher"))
VICTIMS = {
    "the launcher": LAUNCHER,
    "the CLI": (),
    "unshare": UNSHARE,
    "PID 1": PID_1,
    "the relay": RELAY,
    "stopped": RELAY,
}
KILLS = {
    "the launcher": ("running",),
    "the CLI": ("running",),
    "unshare": ("running",),  # with it, and with PID 1, the kernel ends everything
    "PID 1": ("building",),
    "the relay": ("draining",),
    "stopped": ("draining",),
}
MOMENTS = {"building": "building the network", "running": "cut: r0-r1 blackhole", "draining": "draining"}
DURATIONS = {"building": "60s", "running": "60s", "draining": "1s"}
DEAF_TCPDUMP = '#!/bin/sh\n[ "$1" != -i ] || exec sleep 600\n'
"""Never begins to listen, so a network that waits for it is never ready."""
SLOW_IP = (
    f'#!/bin/sh\nsleep 0.5\nexec {shutil.which("ip", path=os.environ["PATH"] + ":/usr/sbin:/sbin")} "$@"\n'
)
"""Wiring blocks the event loop, which takes minutes with a thousand hosts."""


@pytest.mark.parametrize(
    ("victim", "moment"), [(victim, moment) for victim, moments in KILLS.items() for moment in moments]
)
def test_killing_any_process_at_any_moment_leaves_nothing_behind(tmp_path, victim, moment):
    options = ["--links", "relay", "--set", f"duration={DURATIONS[moment]}"]
    with LiveRun(tmp_path, *options, faults=CUT_FOR_GOOD) as run:
        run.until(MOMENTS[moment])
        run.kill(*VICTIMS[victim], number=signal.SIGSTOP if victim == "stopped" else signal.SIGKILL)
        code = run.wait()
        record = run.record()
        run.assert_nothing_left()
        if victim == "the CLI":
            assert (code, record["outcome"]) == (-signal.SIGKILL, None)
            assert record["phase"] in {moment, "running"}  # what is being built may stand by now
        else:
            assert record["outcome"] == "crashed", run.said
            assert code == 1 or (code == 3 and moment == "building")
            assert record["problems"]
        if moment != "building":
            captures = list((run.directory / "captures").iterdir())
            assert captures
            assert all(capture.stat().st_size >= 24 for capture in captures if VICTIMS[victim] == RELAY)


def test_term_stops_a_run_tidily_as_ctrl_c_does(tmp_path):
    with LiveRun(tmp_path, "--set", "duration=60s") as run:
        run.until("running for")
        run.pid(*PID_1)
        run.process.send_signal(signal.SIGTERM)
        assert run.wait() == 130, run.said
        record = run.record()
        assert (record["phase"], record["outcome"]) == ("collected", "interrupted")
        assert record["problems"] == ["stopped by the user before its time"]
        assert {process["exit"]["code"] for process in record["processes"]} == {0}
        assert all(capture["packets"] is not None for capture in record["captures"])
        run.assert_nothing_left()


@pytest.mark.parametrize(
    ("program", "script", "not_reached"),
    [("tcpdump", DEAF_TCPDUMP, "zero_ns"), ("ip", SLOW_IP, "network_ns")],
    ids=["while captures start", "while the event loop is blocked"],
)
def test_ctrl_c_during_the_build_ends_the_run(tmp_path, program, script, not_reached):
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / program).write_text(script)
    (programs / program).chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    with LiveRun(tmp_path, "--set", "duration=60s", PATH=path) as run:
        run.until("building the network")
        run.process.send_signal(signal.SIGINT)
        assert run.wait() == 130, run.said
        record = run.record()
        assert (record["outcome"], record["phase"]) == ("interrupted", "collected")
        assert record["problems"] == ["stopped by the user before its time"]
        assert record["times"][not_reached] is None
        run.assert_nothing_left()


def test_a_second_ctrl_c_ends_at_once(tmp_path):
    with LiveRun(tmp_path, "--set", "duration=60s", faults=CUT_FOR_GOOD) as run:
        run.until("cut: r0-r1 blackhole")
        run.pid(*PID_1)
        run.process.send_signal(signal.SIGINT)
        run.until("draining")
        run.process.send_signal(signal.SIGINT)
        assert run.wait() == 130, run.said
        record = run.record()
        assert record["phase"] != "collected"
        assert (record["outcome"], record["problems"][-1][:18]) == ("interrupted", "killed by the user")
        run.assert_nothing_left()


def test_term_to_the_first_process_stops_a_run_tidily(tmp_path):
    with LiveRun(tmp_path, "--set", "duration=60s") as run:
        run.until("running for")
        os.kill(run.pid(*PID_1), signal.SIGTERM)
        assert run.wait() == 1, run.said
        record = run.record()
        assert (record["phase"], record["outcome"]) == ("collected", "interrupted")
        assert record["problems"] == ["stopped by SIGTERM before its time"]


def test_a_dead_capture_or_node_is_a_problem_of_a_continuing_run(tmp_path):
    with LiveRun(tmp_path, "--set", "duration=8s", "--set", "drain=1s") as run:
        run.until("running for")
        os.kill(process_running(run.token, "tcpdump"), signal.SIGKILL)
        run.until("ended by itself (-9)")
        victim = next(p for p in run.record()["processes"] if p["name"] == "r1/client-0")
        os.kill(_outside_pid(run, victim["pid"]), signal.SIGKILL)
        run.until("problem: r1/client-0 ended unexpectedly (signal 9)")
        run.wait()
        record = run.record()
    assert (record["phase"], record["outcome"]) == ("collected", "completed")
    [end] = [process["exit"] for process in record["processes"] if process["name"] == "r1/client-0"]
    assert (end["signal"], end["expected"]) == (9, False)
    assert [capture["packets"] for capture in record["captures"]].count(None) == 1


def test_a_full_disk_ends_a_run_tidily_and_keeps_its_captures(tmp_path):
    (tmp_path / "runs").mkdir()
    small_disk = f'mount -t tmpfs -o size=200m tmpfs "{tmp_path}/runs" && exec "$@"'
    namespace = (
        ["unshare", "--mount"]
        if os.getuid() == 0
        else ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount"]
    )
    wrapper = [*namespace, "sh", "-c", small_disk, "sh"]
    with LiveRun(tmp_path, "--set", "duration=60s", wrapper=wrapper) as run:
        run.until("running for")
        seen_from_here = Path(f"/proc/{run.process.pid}/root")
        folder = seen_from_here / run.directory.relative_to("/") / "captures"
        with _held(folder) as captures:
            wait_until(lambda: all(_sizes(captures)), "the first blocks of all captures")
            before = _sizes(captures)
            _fill(seen_from_here / tmp_path.relative_to("/") / "runs" / "filler")
            run.until("MiB of disk are left")
            run.until("collected")
            assert len(before) == 8
            assert all(after >= size for size, after in zip(before, _sizes(captures), strict=True))
        assert run.wait() == 1


def test_without_enough_disk_space_no_run_is_started(tmp_path):
    with LiveRun(
        tmp_path, "--set", "workload={event_size: 1kB, rate: 1000000/s}", "--set", "duration=24h"
    ) as run:
        assert run.wait() == 3
        assert "the captures need about" in run.said[-1]
        assert list(run.out.iterdir()) == []


def test_a_missing_program_is_named_before_the_start(tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for tool in ("setpriv", "unshare", "mount", "ip", "nsenter", "bridge", "tcpdump"):
        (programs / tool).symlink_to("/bin/true")
    with LiveRun(tmp_path, PATH=str(programs)) as run:
        assert run.wait() == 3
        assert run.said == ["cutset: not installed: `mnexec` (Debian and Ubuntu: package mininet)\n"]
        assert not run.out.exists()


def _outside_pid(run: LiveRun, inside: int) -> int:
    """Return the PID here of a process with the PID `inside` in the sandbox's namespace."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text, environment = status.read_text(), (status.parent / "environ").read_bytes()
        except OSError:
            continue
        [pids] = [line.split()[1:] for line in text.splitlines() if line.startswith("NSpid:")]
        if pids[-1] == str(inside) and len(pids) > 1 and run.token.encode() in environment:
            return int(pids[0])
    raise AssertionError(f"no process {inside} in the sandbox")


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[Path]:
    """Yield a path of the folder that stays valid when the disk's last process ends."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _sizes(captures: Path) -> list[int]:
    return [file.stat().st_size for file in sorted(captures.iterdir())]


def _fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(1 << 20)):
                pass
        except OSError:
            return
