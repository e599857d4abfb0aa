"""Connections that fail are explained in words."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import paramiko
import pytest
from pydantic import TypeAdapter

from testbed.errors import TestbedError
from testbed.machines.facts import ask
from testbed.machines.inventory import InventoryMachine
from testbed.machines.ssh.connection_errors import error_clause
from testbed.machines.ssh.ssh import Completed, UnreachableError, connect
from tests.testbed.machines.test_findings import machine

TIMEOUT_S = 60.0


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a home without keys or configuration, and no agent."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def here(listening: socket.socket) -> InventoryMachine:
    return machine(0, control="127.0.0.1", port=listening.getsockname()[1])


def problem(machine: InventoryMachine) -> str:
    """Return the error of a login."""
    with pytest.raises(UnreachableError) as raised:
        connect(machine, timeout_s=TIMEOUT_S)
    place = f"h0: cannot be reached by SSH at {machine.control}:{machine.port}: "
    assert str(raised.value).startswith(place)
    return str(raised.value).removeprefix(place)


@contextmanager
def answering(words: bytes) -> Iterator[socket.socket]:
    """Run a server that sends this to its first client and closes the connection."""

    def answer() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(words)
            connection.shutdown(socket.SHUT_WR)
            with suppress(ConnectionError):  # it has heard enough
                while connection.recv(1 << 10):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(TIMEOUT_S)
        thread = threading.Thread(target=answer)
        thread.start()
        yield server
        thread.join()


def test_a_port_without_a_listener_is_explained() -> None:
    with socket.socket() as bound:  # and does not listen
        bound.bind(("127.0.0.1", 0))
        assert problem(here(bound)) == "nothing listens there (connection refused)"


@pytest.mark.parametrize("words", [b"", b"220 mail.example.org ESMTP\r\n" * 200], ids=["mute", "mail"])
def test_a_server_of_another_protocol_is_explained(words: bytes) -> None:
    with answering(words) as server:
        assert problem(here(server)) == "the server is not an SSH server, or is overloaded"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError("timed out"), "no answer (timed out)"),
        (OSError(113, "No route to host"), "No route to host"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (EOFError(), "the server closed the connection without an error message"),
        (
            paramiko.ChannelException(2, "Connect failed"),
            "the jump host before it cannot connect to it (Connect failed)",
        ),
        (paramiko.SSHException("no\x1b[31m kex"), "no?[31m kex"),
        (
            paramiko.ssh_exception.NoValidConnectionsError(
                {("::1", 22): OSError(113, "No route to host"), ("127.0.0.1", 22): ConnectionRefusedError()}
            ),
            "No route to host, nothing listens there (connection refused)",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_other_connection_errors_are_explained(error: Exception, words: str) -> None:
    assert error_clause(error) == words


@pytest.mark.parametrize(
    ("code", "said", "why"),
    [
        (-1, "", "the command was killed, or the connection was lost"),
        (1, "", "exit code 1"),
        (1, "No", "No"),
    ],
)
def test_a_command_that_fails_silently_is_reported_with_its_end(code: int, said: str, why: str) -> None:
    there: Any = SimpleNamespace(machine=machine(0), run=lambda *_, **__: Completed(code, b"", said))
    with pytest.raises(TestbedError, match=f"^h0: cannot clean: {why}$"):
        ask(there, [], {}, TypeAdapter(int), timeout_s=1, doing="clean")
