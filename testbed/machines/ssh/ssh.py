"""SSH to a machine of an inventory: the only module that opens connections and quotes arguments.

Only keys and the agent are tried, never passwords. Remote commands are argument lists; only this module
quotes them, for the shell that sshd runs. Output of that shell before a command begins (a line in ~/.bashrc
is enough) is skipped. `testbed.machines.ssh.host_keys` decides which host keys are accepted.
"""

import logging
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Self

import fabric
import paramiko

from experiments.files.sanitize import sanitize
from testbed.errors import MachineError, TestbedError
from testbed.machines.inventory import InventoryMachine
from testbed.machines.ssh.connection_errors import error_clause
from testbed.machines.ssh.host_keys import HostKeyError, HostKeyRule, read_known_hosts
from testbed.machines.ssh.ssh_config import way_to

CONNECT_TIMEOUT_S = 10.0
RUN_TIMEOUT_S = 30.0
KEEPALIVE_S = 5
WINDOW_BYTES = 8 << 20
PACKET_BYTES = 32 << 10
SAID_BYTES_MAX = 64 << 10
OUTPUT_BYTES_MAX = 64 << 20
LOGIN_BYTES_MAX = 64 << 10
"""The most that a login shell may print before our command begins."""
BEGUN = b"\ncutset-begins\n"
BEGINNING = ["sh", "-c", r'printf "\ncutset-begins\n" && exec "$@"', "sh"]
"""The prefix of every command: prints `BEGUN`, then executes the command."""


class UnreachableError(TestbedError):
    """A machine cannot be reached by SSH now; a retry may help."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a remote command. `code` is its exit code, -1 if a signal ended it."""

    code: int
    stdout: bytes
    error_output: str  # its standard error, as one line

    @property
    def why(self) -> str:
        """Why it failed: what it said, or else how it ended."""
        return self.error_output or how_ended(self.code)


def how_ended(code: int) -> str:
    """Describe the end of a remote command."""
    return f"exit code {code}" if code >= 0 else "the command was killed, or the connection was lost"


def connect(machine: InventoryMachine, *, timeout_s: float = CONNECT_TIMEOUT_S) -> "SshConnection":
    """Log in; the caller closes the connection, or uses it as a context manager.

    Raises MachineError for a host key that is unknown or not the expected one, if none of our keys is
    accepted, and if a configuration file cannot be read; UnreachableError if there is no route to the machine
    or no answer. Each names the hop that failed.
    """
    _silence_paramiko()
    way = way_to(machine)
    known = read_known_hosts()
    with ExitStack() as stack:
        for hop in way:
            target = hop is way[-1]
            name = machine.name if target else f"{machine.name}: on the way there, {hop.host}"
            rule = HostKeyRule(hop, name, machine.host_key if target else None, known)
            stack.callback(hop.client.close)  # fabric closes only connections that are logged in
            _open(hop, name, rule, timeout_s)
        transport = way[-1].client.get_transport()
        assert transport is not None
        transport.set_keepalive(KEEPALIVE_S)
        return SshConnection(machine, way[-1].user, transport, stack.pop_all())


def _open(hop: fabric.Connection, name: str, rule: HostKeyRule, timeout_s: float) -> None:
    hop.connect_timeout = max(1, round(timeout_s))
    waits = dict.fromkeys(("banner_timeout", "auth_timeout", "channel_timeout"), timeout_s)
    hop.connect_kwargs = {**hop.connect_kwargs, **waits, "transport_factory": _Transport}
    who = f"{hop.user}@{hop.host}"
    try:
        hop.open()
    except HostKeyError as error:
        raise MachineError(str(error)) from None
    except paramiko.BadHostKeyException as error:
        raise MachineError(str(rule.changed(error))) from None
    except (OSError, EOFError, ValueError, paramiko.SSHException) as error:
        said = error_clause(error)
        if isinstance(error, OSError) and error.filename is not None:
            raise MachineError(f"{name}: SSH needs {error.filename}: {error.strerror}") from None
        if isinstance(error, ValueError):
            raise MachineError(f"{name}: a key for {who} cannot be read: {said}") from None
        refused = isinstance(error, paramiko.SSHException) and _has_answered(hop)
        if refused or isinstance(error, paramiko.AuthenticationException):
            raise MachineError(
                f"{name}: {who} accepts none of our keys ({said}): name one with `key:` in the inventory, or"
                " add one to the agent; passwords are not used"
            ) from None
        raise UnreachableError(f"{name}: cannot be reached by SSH at {hop.host}:{hop.port}: {said}") from None


def _has_answered(hop: fabric.Connection) -> bool:
    """Return whether the connection is up with an accepted host key, so only the login can have failed."""
    transport = hop.client.get_transport()
    with suppress(paramiko.SSHException):  # it has no key yet
        return transport is not None and transport.is_active() and bool(transport.get_remote_server_key())
    return False


class SshConnection:
    """A connection to a machine, after login."""

    def __init__(
        self, machine: InventoryMachine, user: str, transport: paramiko.Transport, way: ExitStack
    ) -> None:
        """way: closes all hops."""
        self.machine = machine
        self.user = user
        self._transport = transport
        self._way = way

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Log out; idempotent."""
        self._way.close()

    @property
    def alive(self) -> bool:
        """Whether the connection is up, as far as is known."""
        return bool(self._transport.is_active())

    def open(self, argv: Sequence[str], *, root: bool = False) -> "RemoteProcess":
        """Start a command and return its process. root: as root, with sudo for other users.

        Raises UnreachableError.
        """
        try:
            channel = self._transport.open_session(
                window_size=WINDOW_BYTES, max_packet_size=PACKET_BYTES, timeout=CONNECT_TIMEOUT_S
            )
            channel.exec_command(shlex.join([*BEGINNING, *(self._as_root(argv) if root else argv)]))
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise _lost(self.machine.name, error) from None
        return RemoteProcess(channel, self.machine.name)

    def run(
        self, argv: Sequence[str], *, data: bytes = b"", timeout_s: float = RUN_TIMEOUT_S, root: bool = False
    ) -> Completed:
        """Run a command to its end, with `data` as its standard input. Raises UnreachableError."""
        with self.open(argv, root=root) as process:
            process.timeout_s = timeout_s
            if data:
                with suppress(UnreachableError):  # it may end before it has read all; see its exit code
                    process.write(data)
            process.end_input()
            output = bytearray()
            while chunk := process.read(1 << 20):
                output += chunk
                if len(output) > OUTPUT_BYTES_MAX:
                    most = OUTPUT_BYTES_MAX >> 20
                    raise TestbedError(f"{self.machine.name}: {argv[0]} printed more than {most} MiB")
            return Completed(process.wait(), bytes(output), process.error_output())

    def _as_root(self, argv: Sequence[str]) -> Sequence[str]:
        return argv if self.user == "root" else ["sudo", "-n", "--", *argv]


class RemoteProcess:
    """A command on a machine. Reads and writes wait at most `timeout_s` each (None: without limit).

    on_close: called by `close`, for the connection if nothing else uses it.
    """

    def __init__(self, channel: paramiko.Channel, name: str) -> None:
        self._channel = channel
        self._name = name
        self._begun = False
        self._held = bytearray()  # received, but not returned by `read` yet
        self._said = bytearray()
        self.timeout_s: float | None = None
        self.on_close: Callable[[], object] = lambda: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes of its standard output, b"" at the end.

        Raises UnreachableError; TestbedError if the login shell prints too much before the command begins.
        """
        while not self._begun:
            data = self._receive(LOGIN_BYTES_MAX)
            self._held += data
            before, begun, rest = self._held.partition(BEGUN)
            if begun:
                self._begun, self._held = True, rest
            elif not data:
                self._said += before  # the login shell's output; the command did not begin
                return b""
            elif len(before) > LOGIN_BYTES_MAX:
                raise TestbedError(
                    f"{self._name}: its login shell prints more than {LOGIN_BYTES_MAX >> 10} KiB before a"
                    " command begins"
                )
        if self._held:
            held, self._held = bytes(self._held[:size]), self._held[size:]
            return held
        return self._receive(size)

    def read_line(self, bytes_max: int) -> bytes:
        """Return the next line, with its end; a part of it if its output ends or the line is too long."""
        line = b""
        while b"\n" not in line and len(line) <= bytes_max and (piece := self.read(bytes_max)):
            line += piece
        first, end, rest = line.partition(b"\n")
        self._held[:0] = rest
        return first + end

    def _receive(self, size: int) -> bytes:
        try:
            self._channel.settimeout(self.timeout_s)
            data: bytes = self._channel.recv(size)
        except TimeoutError:
            raise UnreachableError(f"{self._name}: no answer for {self.timeout_s:g} s") from None
        except OSError as error:
            raise _lost(self._name, error) from None
        if not data and not self._channel.eof_received:  # a broken connection reads like an end
            raise UnreachableError(f"{self._name}: the SSH connection is lost")
        return data

    def write(self, data: bytes) -> None:
        """Write to its standard input.

        Raises UnreachableError if the connection is lost or the command no longer reads.
        """
        try:
            self._channel.settimeout(self.timeout_s)
            self._channel.sendall(data)
        except TimeoutError:
            raise UnreachableError(f"{self._name}: accepts no data for {self.timeout_s:g} s") from None
        except OSError as error:
            raise _lost(self._name, error) from None

    def end_input(self) -> None:
        """Close its standard input."""
        with suppress(OSError):  # it ended already
            self._channel.shutdown_write()

    def error_output(self) -> str:
        """Return its standard error so far, as one sanitized line."""
        while self._channel.recv_stderr_ready() and len(self._said) < SAID_BYTES_MAX:
            chunk = self._channel.recv_stderr(4096)
            if not chunk:
                break
            self._said += chunk
        return sanitize(self._said.decode(errors="replace"))

    def wait(self) -> int:
        """Wait for its end; returns its exit code, or -1 if a signal ended it or the connection is lost."""
        self._channel.status_event.wait(self.timeout_s)
        return self._channel.exit_status if self._channel.exit_status_ready() else -1

    def close(self) -> None:
        """Close the channel; idempotent. The command reads the end of its input."""
        with suppress(OSError, EOFError):
            self._channel.close()
        self.on_close()


class _Transport(paramiko.Transport):
    """A transport that prefers AES-GCM (RFC 5647), for which processors have instructions."""

    _preferred_ciphers = (
        "aes128-gcm@openssh.com",
        "aes256-gcm@openssh.com",
        *paramiko.Transport._preferred_ciphers,
    )


def _lost(name: str, error: Exception) -> UnreachableError:
    return UnreachableError(f"{name}: the SSH connection is lost: {error_clause(error)}")


def _silence_paramiko() -> None:
    """Silence paramiko's log of broken connections, which repeats the errors that it raises."""
    log = logging.getLogger("paramiko")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
        log.propagate = False
