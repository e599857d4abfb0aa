"""A program that was started on a machine ends if the controller neither sends nor reads."""

import contextlib
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from testbed.capturing import icmp
from testbed.machines import examination, remote_cleanup, run_folders
from testbed.machines.software import trusted_folders, unpacking
from testbed.machines.software.deploy import sent_program
from testbed.machines.ssh import time_limit

IMPORTED = (time_limit, trusted_folders, run_folders, icmp)
PATIENCE_S = "0.2"
BOUND_S = 30.0
AGENT = """
import sys
from testbed.machines.agent import __main__ as agent
agent.PATIENCE_S = float(sys.argv.pop())
agent.main(sys.argv[1:])
"""


def left_alone(program: str, *arguments: str, given: bytes = b"") -> tuple[int, bytes]:
    """Run a program whose input stays open; return its exit code and output."""
    command = [sys.executable, "-c", program, *arguments, PATIENCE_S]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(given)
        process.stdin.flush()
        try:
            code = process.wait(BOUND_S)
        finally:
            process.kill()
        return code, process.stdout.read()


@pytest.mark.parametrize("module", [examination, remote_cleanup])
def test_a_program_without_requests_is_ended(module: object) -> None:
    code, said = left_alone(sent_program(*IMPORTED, module))  # type: ignore[arg-type]
    assert (code, said) == (-signal.SIGALRM, b"")


def test_a_stalled_archive_is_given_up_and_leaves_nothing(tmp_path: Path) -> None:
    code, said = left_alone(
        sent_program(*IMPORTED, unpacking), str(tmp_path / "code"), "0" * 64, "1000", given=b"some"
    )
    assert (code, said) == (-signal.SIGALRM, b"want\n")
    assert list((tmp_path / "code").iterdir()) == []


def test_a_supervisor_without_a_run_is_not_started(tmp_path: Path) -> None:
    code, _ = left_alone(AGENT, "start", str(tmp_path / "run"), given=b'{"run": ')
    assert code == -signal.SIGALRM
    assert not (tmp_path / "run").exists()


def test_an_attached_client_that_reads_nothing_is_disconnected(tmp_path: Path) -> None:
    def talk() -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(ConnectionError):
            connection.sendall(bytes(8 << 20))  # more than pipes hold

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / run_folders.SOCKET))
        listener.listen()
        listener.settimeout(BOUND_S)
        talking = threading.Thread(target=talk)
        talking.start()
        code, _ = left_alone(AGENT, "attach", str(tmp_path))
        talking.join()
    assert code == -signal.SIGALRM
