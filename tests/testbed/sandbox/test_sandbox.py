"""Sandboxes: their content, their ends, and that nothing of them remains."""

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.child_python import python_command
from testbed.errors import MachineError
from testbed.sandbox import Sandbox, run_in_sandbox
from tests.testbed.as_ordinary_user import ordinary
from tests.testbed.leftovers import (
    assert_nothing_left,
    host_interfaces,
    namespaces_of,
    process_running,
    processes_of,
)

pytestmark = pytest.mark.network

PYTHON = sys.executable
PID_1 = python_command("testbed.sandbox.init")
INHABITANT = [PYTHON, "-m", "tests.testbed.sandbox.inhabitant"]


@pytest.fixture
def token():
    return f"test-{secrets.token_hex(6)}"


def test_a_commands_output_and_exit_code_are_passed_on():
    result = run_in_sandbox(["sh", "-c", "cat; echo oops >&2; exit 3"], text="hello")
    assert (result.returncode, result.stdout, result.stderr) == (3, "hello", "oops\n")


def test_a_missing_command_is_named():
    result = run_in_sandbox(["no-such-program"])
    assert result.returncode != 0
    assert "no-such-program" in result.stderr


def test_a_sandbox_has_only_a_loopback_which_is_up():
    result = run_in_sandbox(["sh", "-c", "ls /sys/class/net; ip -o link show up"])
    names, up = result.stdout.splitlines()
    assert names == "lo"
    assert " lo: " in up


def test_a_sandbox_sees_only_its_own_processes():
    result = run_in_sandbox(["sh", "-c", "ls /proc | grep -c '^[0-9]'"])
    assert int(result.stdout) < 10


def test_mounts_inside_are_invisible_outside():
    before = mounts_over("/etc/hosts")
    result = run_in_sandbox(["sh", "-c", "mount --bind /dev/null /etc/hosts && cat /etc/hosts"])
    assert (result.returncode, result.stdout) == (0, "")
    assert mounts_over("/etc/hosts") == before
    assert Path("/etc/hosts").stat().st_size > 0


def mounts_over(place: str) -> list[str]:
    """Return the mounts at a place; other places may change meanwhile."""
    return [line for line in Path("/proc/mounts").read_text().splitlines() if line.split()[1] == place]


MISSING = """
import resource
import sys
from pathlib import Path
from testbed.sandbox.passing_mount import mount_tmpfs_anywhere
folder = Path(sys.argv[1], "missing")
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
mount_tmpfs_anywhere(folder, 1 << 20)
(folder / "inside").touch()
Path(sys.argv[1], "kept", "new").write_text(Path(sys.argv[1], "link").read_text())
"""


def test_a_folder_that_is_mounted_where_none_was_is_not_made_outside(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "file").write_text("as before")
    (tmp_path / "link").symlink_to("file")
    others = {f"other-{number}" for number in range(30)}  # more than files may be open
    for each in others:
        (tmp_path / each).touch()
    result = run_in_sandbox([PYTHON, "-c", MISSING, str(tmp_path)])
    assert (result.returncode, result.stderr) == (0, "")
    assert {each.name for each in tmp_path.iterdir()} == {"kept", "file", "link", *others}
    assert (tmp_path / "kept" / "new").read_text() == "as before"


def test_orphans_are_reaped():
    script = "pid=$(sleep 0.1 >/dev/null & echo $!); while [ -e /proc/$pid ]; do sleep 0.1; done; echo gone"
    assert run_in_sandbox(["sh", "-c", script]).stdout == "gone\n"


def test_term_to_the_first_process_reaches_the_command(token):
    with Sandbox([*INHABITANT, "--obey"], token=token) as sandbox:
        assert sandbox.channel.receive(20) == {"did": "settle"}
        os.kill(process_running(token, *PID_1), signal.SIGTERM)
        assert sandbox.wait(20) == 7
    assert not processes_of(token)


def test_leaving_kills_processes_that_ignore_signals(token):
    interfaces = host_interfaces()
    with Sandbox(INHABITANT, token=token) as sandbox:
        assert sandbox.channel.receive(20) == {"did": "settle"}
        namespaces = namespaces_of(token)
        assert namespaces
    assert not processes_of(token)
    assert_nothing_left(token, namespaces, interfaces)


def test_a_stopped_first_process_cannot_keep_a_sandbox_alive(token, monkeypatch):
    monkeypatch.setattr("testbed.sandbox.outside.DIE_TIMEOUT_S", 0.2)
    interfaces = host_interfaces()
    with Sandbox(INHABITANT, token=token) as sandbox:
        assert sandbox.channel.receive(20) == {"did": "settle"}
        namespaces = namespaces_of(token)
        os.kill(process_running(token, *PID_1), signal.SIGSTOP)
    assert_nothing_left(token, namespaces, interfaces)


@pytest.fixture(params=["as we are", "ordinary user"])
def holder(request, token, tmp_path):
    """Yield the PID of an interpreter that holds a sandbox, as the CLI would."""
    command = [PYTHON, "-m", "tests.testbed.sandbox.holder", token]
    if request.param == "ordinary user":
        command = ordinary(command, tmp_path)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "settled\n"
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize("victim", ["the CLI", "unshare", "PID 1"])
def test_killing_any_one_process_leaves_nothing_behind(holder, token, victim):
    interfaces, namespaces = host_interfaces(), namespaces_of(token)
    victims = {
        "the CLI": lambda: holder,
        "unshare": lambda: process_running(token, "unshare"),
        "PID 1": lambda: process_running(token, *PID_1),
    }
    assert namespaces
    os.kill(victims[victim](), signal.SIGKILL)
    assert_nothing_left(token, namespaces, interfaces)


def test_if_namespaces_are_forbidden_the_error_gives_the_remedy(tmp_path):
    script = "from testbed.sandbox import run_in_sandbox; run_in_sandbox(['true'])"
    nested = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", nested, "sh"]
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
    result = subprocess.run(
        ordinary([*command, *drop, PYTHON, "-c", script], tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        f"{MachineError.__name__}: cannot create a sandbox: user namespaces are switched off here"
        in result.stderr
    )
    assert "sudo sysctl user.max_user_namespaces=" in result.stderr
