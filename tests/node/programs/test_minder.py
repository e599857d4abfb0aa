"""Programs as nodes: started, ready, ended, and killed with all their children, each with its own view."""

import os
import shutil
import signal
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from node.core.program import Readiness, ResourceLimits, Stopping
from tests.node.programs.minded import AT_ONCE, WITHIN, program, shell, spec
from tests.node.tcp.launched import WAIT_S, free_port, launcher, log_lines

pytestmark = pytest.mark.network


@pytest.fixture
def launched():
    with launcher(WITHIN) as there:
        yield there


def begin(launched, folder: Path, script: str, **given):
    """Start a shell with this script as a program; return its specification."""
    one = spec(folder, shell(script, **given))
    launched.start(one)
    return one


def logged(of) -> list:
    return log_lines(of) if Path(of.log).exists() else []


def output(of) -> list[str]:
    return [line["text"] for line in logged(of) if line["event"] == "output"]


def until(condition):
    deadline = time.monotonic() + WAIT_S
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def runs(pid: int) -> bool:
    return state(pid) != "Z"


def test_a_programs_output_is_its_hosts_log_and_it_has_its_files_and_environment(tmp_path, launched):
    given = {"files": {"its.conf": "port 12\n"}, "env": {"WHO": "r0/broker-0"}}
    script = "cat its.conf; echo $WHO; echo to the other >&2; printf half; exec sleep 60"
    one = begin(launched, tmp_path, script, **given)
    launched.wait_ready(1)
    until(lambda: len(output(one)) >= 3)
    assert launched.finish(1)[0]["code"] == 0
    assert sorted(output(one)) == ["half", "port 12", "r0/broker-0", "to the other"]


def test_tls_keys_go_into_a_private_file_per_process_generation(tmp_path, launched):
    place = tmp_path / "programs" / "r0-broker-0" / "tls-keys.log"
    script = "stat -c %a $SSLKEYLOGFILE; echo keys > $SSLKEYLOGFILE; exec sleep 60"
    one = spec(tmp_path, shell(script), key_log=str(place))
    for life in (1, 2):
        launched.start(one)
        until(lambda life=life: len(output(one)) == life)
        launched.finish(life)
    assert output(one) == ["600"] * 2
    assert [path.name for path in sorted(place.parent.glob("tls-*"))] == [
        "tls-keys-1.log",
        "tls-keys.log",
    ]


@pytest.mark.parametrize("way", ["port", "line", "http", "command"])
def test_a_program_is_ready_only_when_its_condition_holds(tmp_path, launched, way):
    port, flag = free_port(), tmp_path / "go"
    serve = f"{sys.executable} -u -m http.server {port} --bind 127.0.0.1"
    ready = {
        "port": Readiness(port=str(port)),
        "line": Readiness(line="Serving HTTP on"),
        "http": Readiness(http=f"http://127.0.0.1:{port}/"),
        "command": Readiness(command=("test", "-e", "served")),
    }[way]
    script = f"while ! test -e {flag}; do sleep 0.05; done; touch served; exec {serve}"
    one = begin(launched, tmp_path, script, ready=replace(ready, within_us=60_000_000))
    launched.wait(lambda: launched.all_said("started"))
    until(lambda: logged(one))
    time.sleep(0.3)
    assert not [line for line in log_lines(one) if line["event"] == "ready"]
    flag.touch()
    launched.wait_ready(1)


@pytest.mark.parametrize(
    ("minded", "problem"),
    [
        (
            shell("exec sleep 60", ready=Readiness(port="9", within_us=300_000)),
            "not ready after 0.3 s: nothing listens at 127.0.0.1:9",
        ),
        (program("no-such-program"), "cannot start no-such-program: "),
        (shell("exit 0"), "sh ended by itself, with exit code 0"),
        (
            shell("sleep 60 & echo gone", ready=Readiness(line="never")),
            "sh ended by itself, with exit code 0 before it was ready (if it went into the background, "
            "keep it in the foreground); its last words: gone",
        ),
    ],
    ids=["not ready", "not there", "ended", "in the background"],
)
def test_a_failed_program_reports_the_reason(tmp_path, launched, minded, problem):
    launched.start(spec(tmp_path, minded))
    [ended] = launched.wait(lambda: launched.all_said("exited"))
    assert ended["code"] != 0
    [failed] = launched.all_said("failed")
    assert failed["problem"].startswith(problem)


def test_signals_reach_all_children_of_a_program(tmp_path, launched):
    one = begin(launched, tmp_path, "sleep 600 & echo $!; exec sleep 600")
    [said] = launched.wait(lambda: launched.all_said("started"))
    child = int(until(lambda: output(one))[0])
    for number, expected in ((signal.SIGSTOP, "T"), (signal.SIGCONT, "S")):
        os.killpg(said["pid"], number)
        until(lambda expected=expected: state(child) == expected)
    os.killpg(said["pid"], signal.SIGKILL)
    [ended] = launched.wait(lambda: launched.all_said("exited"))
    assert ended["signal"] == signal.SIGKILL
    until(lambda: not runs(child))


def test_processes_that_left_the_group_end_with_the_program(tmp_path, launched):
    one = begin(launched, tmp_path, "setsid sleep 600 & echo $!; exec sleep 600")
    launched.wait_ready(1)
    child = int(until(lambda: output(one))[0])
    launched.finish(1)
    until(lambda: not runs(child))


def test_a_program_is_ended_by_its_own_signal_and_grace(tmp_path, launched):
    script = "trap 'sleep 0.3; echo tidied; exit 3' INT; echo up; while :; do sleep 0.05; done"
    one = begin(launched, tmp_path, script, stop=Stopping("INT", 20_000_000))
    until(lambda: output(one))
    assert launched.finish(1)[0]["code"] == 0
    assert output(one) == ["up", "tidied"]


def test_a_program_that_does_not_end_is_killed_after_its_grace(tmp_path, launched):
    one = begin(launched, tmp_path, "trap '' TERM; echo up; while :; do sleep 0.05; done", stop=AT_ONCE)
    until(lambda: output(one))
    assert launched.finish(1)[0]["code"] == 0
    assert [line["after_us"] for line in log_lines(one) if line["event"] == "killed"] == [100_000]


def test_a_program_dies_with_the_launcher(tmp_path):
    one = spec(tmp_path, shell("echo $$; exec sleep 600"))
    with launcher(WITHIN) as there:
        there.start(one)
        pid = int(until(lambda: output(one))[0])
        there.process.kill()
    until(lambda: not runs(pid))


def test_two_instances_do_not_share_storage(tmp_path, launched):
    look = "hostname; grep -c r0-broker-0 /etc/hosts; ls /var/lib /run"
    script = f"{look}; touch /var/lib/mine /run/mine; sleep 600"
    both = [spec(tmp_path, shell(script), name) for name in ("r0/broker-0", "r0/broker-1")]
    for one in both:
        launched.start(one)
    for one in both:
        assert until(lambda: len(output(one)) >= 5 and output(one)) == [  # noqa: B023
            one.host,
            "1",
            "/run:",
            "",
            "/var/lib:",
        ]
    assert not Path("/run/mine").exists()


@pytest.mark.parametrize(("keeps", "there"), [(True, "mine"), (False, "nothing")])
def test_storage_survives_a_restart_only_if_it_is_kept(tmp_path, launched, keeps, there):
    script = "cat /var/lib/it || echo nothing; echo mine >/var/lib/it; exec sleep 600"
    one = begin(launched, tmp_path, script, keeps_storage=keeps)
    said = launched.wait(lambda: launched.all_said("started"))[0]
    until(lambda: "nothing" in output(one) and (Path(one.storage) / "it").exists())
    os.killpg(said["pid"], signal.SIGKILL)
    launched.wait(lambda: launched.all_said("exited"))
    before = len(output(one))
    launched.start(replace(one, start=1))
    until(lambda: there in output(one)[before:])


def test_resource_limits_are_enforced(tmp_path, launched):
    script = "import os; print(len(os.sched_getaffinity(0)), flush=True); bytearray(1 << 30)"
    limits = ResourceLimits(memory_bytes=256 << 20, processors=1)
    one = spec(tmp_path, program(sys.executable, "-c", script, limits=limits))
    launched.start(one)
    launched.wait(lambda: launched.all_said("exited"))
    assert output(one)[0] == "1"
    assert output(one)[-1] == "MemoryError"


def test_a_run_directory_below_run_stays_where_it_is(launched):
    place = Path("/run") if os.access("/run", os.W_OK) else None
    if place is None:
        pytest.skip("needs to write below /run")
    folder = place / f"cutset-test-{os.getpid()}-{socket.gethostname()}"
    try:
        one = spec(folder, shell("pwd; ls; exec sleep 600", files={"a": ""}))
        (folder / "programs").mkdir(parents=True)
        launched.start(one)
        assert until(lambda: len(output(one)) >= 2 and output(one)) == [
            str(folder / "programs" / one.host),
            "a",
            "hosts",
        ]
    finally:
        launched.finish(1)
        shutil.rmtree(folder, ignore_errors=True)
