"""SSH to a machine of an inventory: the one place that opens connections and quotes.

Only keys and the agent are tried, never passwords. Remote commands are argument lists; the shell that sshd
hands them to sees them quoted here and nowhere else. Which host keys are taken: `testbed.hosts.host_keys`.
"""

import logging
import shlex
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import fabric
import paramiko

from testbed.errors import MachineError, TestbedError
from testbed.hosts import host_keys
from testbed.hosts.inventory import Machine

CONNECT_TIMEOUT_S = 10.0
RUN_TIMEOUT_S = 30.0
KEEPALIVE_S = 5
WINDOW_BYTES = 8 << 20
PACKET_BYTES = 32 << 10
SAID_BYTES_MAX = 64 << 10
OUTPUT_BYTES_MAX = 64 << 20


class UnreachableError(TestbedError):
    """A machine cannot be reached by SSH, now: trying again may help."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A remote command that ended. `code` is its exit code, -1 if a signal ended it."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def said(self) -> str:
        """What it said on standard error, in one line."""
        return " ".join(self.stderr.decode(errors="replace").split())


def quoted(argv: Sequence[str]) -> str:
    """A command line that a POSIX shell takes apart into exactly these arguments."""
    return shlex.join(argv)


def connect(machine: Machine, *, timeout_s: float = CONNECT_TIMEOUT_S) -> "Connection":
    """Log in. Close it, or use it as a context manager.

    Raises MachineError for a host key that is unknown or not the expected one, and when no key of ours is
    taken; UnreachableError when there is no way to the machine or no answer.
    """
    connection = fabric.Connection(
        machine.control,
        user=machine.user,
        port=machine.port,
        connect_timeout=max(1, round(timeout_s)),
        connect_kwargs={
            **({"key_filename": str(machine.key)} if machine.key else {}),
            "banner_timeout": timeout_s,
            "auth_timeout": timeout_s,
            "channel_timeout": timeout_s,
            "transport_factory": _Transport,
        },
    )
    host_keys.check(connection, machine)
    _let_errors_speak()
    with ExitStack() as stack:
        stack.callback(connection.client.close)  # fabric closes only what has logged in
        _open(connection, machine)
        stack.pop_all()
    transport = connection.client.get_transport()
    assert transport is not None  # noqa: S101
    transport.set_keepalive(KEEPALIVE_S)
    return Connection(machine, connection, transport)


def _open(connection: fabric.Connection, machine: Machine) -> None:
    try:
        connection.open()
    except host_keys.RefusedError as error:
        raise MachineError(str(error)) from None
    except paramiko.BadHostKeyException as error:
        raise MachineError(host_keys.changed(machine, connection, error)) from None
    except paramiko.AuthenticationException as error:
        raise MachineError(
            f"{machine.name}: {connection.user}@{connection.host} takes none of our keys ({error}): name one"
            " with `key:` in the inventory, or add one to the agent; passwords are not used"
        ) from None
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise UnreachableError(
            f"{machine.name}: cannot be reached by SSH at {connection.host}:{connection.port}: "
            f"{str(error) or type(error).__name__}"
        ) from None


class Connection:
    """A machine that we are logged in to."""

    def __init__(
        self, machine: Machine, connection: fabric.Connection, transport: paramiko.Transport
    ) -> None:
        self.machine = machine
        self.user: str = connection.user
        self._connection = connection
        self._transport = transport

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Log out; idempotent."""
        self._connection.close()

    @property
    def alive(self) -> bool:
        """Whether the connection still stands, as far as is known."""
        return bool(self._transport.is_active())

    def open(self, argv: Sequence[str], *, root: bool = False) -> "RemoteProcess":
        """Start a command and talk to it. root: as root, by sudo where we are somebody else.

        Raises UnreachableError.
        """
        try:
            channel = self._transport.open_session(
                window_size=WINDOW_BYTES, max_packet_size=PACKET_BYTES, timeout=CONNECT_TIMEOUT_S
            )
            channel.exec_command(quoted(self._as_root(argv) if root else argv))
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise self._lost(error) from None
        return RemoteProcess(channel, self.machine.name)

    def run(
        self, argv: Sequence[str], *, data: bytes = b"", timeout_s: float = RUN_TIMEOUT_S, root: bool = False
    ) -> Completed:
        """Run a command to its end, with `data` as its standard input. Raises UnreachableError."""
        with self.open(argv, root=root) as process:
            process.timeout_s = timeout_s
            if data:
                with suppress(UnreachableError):  # it may end before it has read all; its exit code says why
                    process.write(data)
            process.end_input()
            output = bytearray()
            while chunk := process.read(1 << 20):
                output += chunk
                if len(output) > OUTPUT_BYTES_MAX:
                    raise TestbedError(f"{self.machine.name}: {argv[0]} says more than can be right")
            return Completed(process.wait(), bytes(output), process.said().encode())

    def put(self, data: bytes | Path, path: str) -> None:
        """Write a remote file as ourselves. Raises UnreachableError; TestbedError if it cannot be written."""
        with self.open(["sh", "-c", 'cat >"$1"', "sh", path]) as process:
            if isinstance(data, Path):
                with data.open("rb") as stream:
                    while chunk := stream.read(1 << 20):
                        process.write(chunk)
            else:
                process.write(data)
            process.end_input()
            if process.wait() != 0:
                raise TestbedError(f"{self.machine.name}: cannot write {path}: {process.said()}")

    def _as_root(self, argv: Sequence[str]) -> Sequence[str]:
        return argv if self.user == "root" else ["sudo", "-n", "--", *argv]

    def _lost(self, error: Exception) -> UnreachableError:
        said = str(error) or type(error).__name__
        return UnreachableError(f"{self.machine.name}: the SSH connection is lost: {said}")


class RemoteProcess:
    """A command on a machine. Reads and writes wait at most `timeout_s` each (None: as long as it takes)."""

    def __init__(self, channel: paramiko.Channel, name: str) -> None:
        self._channel = channel
        self._name = name
        self._said = bytearray()
        self.timeout_s: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read(self, size: int) -> bytes:
        """At most `size` bytes of its standard output, b"" at the end. Raises UnreachableError."""
        try:
            self._channel.settimeout(self.timeout_s)
            data: bytes = self._channel.recv(size)
        except TimeoutError:
            raise UnreachableError(f"{self._name}: no answer for {self.timeout_s:g} s") from None
        except OSError as error:
            raise UnreachableError(f"{self._name}: the SSH connection is lost: {error}") from None
        if not data and not self._channel.eof_received:  # a broken connection reads like an end
            raise UnreachableError(f"{self._name}: the SSH connection is lost")
        return data

    def write(self, data: bytes) -> None:
        """Give it input. Raises UnreachableError when the connection is lost or it reads no more."""
        try:
            self._channel.settimeout(self.timeout_s)
            self._channel.sendall(data)
        except TimeoutError:
            raise UnreachableError(f"{self._name}: takes nothing for {self.timeout_s:g} s") from None
        except OSError as error:
            raise UnreachableError(f"{self._name}: the SSH connection is lost: {error}") from None

    def end_input(self) -> None:
        """Say that there is no more input."""
        with suppress(OSError):  # it ended already
            self._channel.shutdown_write()

    def said(self) -> str:
        """What it has said on standard error so far."""
        while self._channel.recv_stderr_ready() and len(self._said) < SAID_BYTES_MAX:
            chunk = self._channel.recv_stderr(4096)
            if not chunk:
                break
            self._said += chunk
        return self._said.decode(errors="replace")

    def wait(self) -> int:
        """Its exit code, once it has ended; -1 if a signal ended it or the connection is lost."""
        self._channel.status_event.wait(self.timeout_s)
        return self._channel.exit_status if self._channel.exit_status_ready() else -1

    def close(self) -> None:
        """Let go of it; idempotent. What reads its input sees the end of it."""
        with suppress(OSError, EOFError):
            self._channel.close()


class _Transport(paramiko.Transport):
    """Prefers AES in Galois/counter mode (RFC 5647), for which processors have instructions."""

    _preferred_ciphers = (
        "aes128-gcm@openssh.com",
        "aes256-gcm@openssh.com",
        *paramiko.Transport._preferred_ciphers,
    )


def _let_errors_speak() -> None:
    """What paramiko logs of a connection that breaks is in the errors that it raises, too."""
    log = logging.getLogger("paramiko")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
        log.propagate = False
