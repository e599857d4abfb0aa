"""Accepted host keys: the fingerprint in the inventory if it has one, otherwise known_hosts (sshd(8)).

An unknown key is refused with the command that adds it; no key is accepted silently, also not on jump hosts
(ProxyJump of ssh_config(5)). A key that known_hosts marks as revoked is always refused.

`KnownHosts` combines those of this user and this machine: ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts.
paramiko parses lines, but does not support markers. Certificates are not used, so `@cert-authority` is
ignored; a key that is `@revoked` anywhere is never accepted. Unknown key types are skipped. A line that
cannot be parsed is an error, because it could be the relevant one. Source: sshd(8), "SSH_KNOWN_HOSTS FILE
FORMAT".
"""

import base64
import hashlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fabric
import paramiko
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

from testbed.errors import MachineError

SYSTEM_FILE = Path("/etc/ssh/ssh_known_hosts")
CERT_AUTHORITY, REVOKED = "@cert-authority", "@revoked"
HASHED = "|1|"
KINDS = frozenset(kind for key in paramiko.key_classes for kind in key.identifiers())


@dataclass(frozen=True, slots=True)
class KnownHostLine:
    """Host names, possibly hashed, and their key; or a revoked key."""

    entry: HostKeyEntry
    revoked: bool


class KnownHosts:
    """The known keys. Hosts are named as in the files: `[NAME]:PORT` for a port other than 22."""

    def __init__(self, lines: list[KnownHostLine]) -> None:
        self._revoked = {line.entry.key.asbytes() for line in lines if line.revoked}
        self._hosts = paramiko.HostKeys()
        for line in reversed(lines):  # `add` replaces an earlier key
            if not line.revoked and not self.revoked(line.entry.key):
                for name in line.entry.hostnames:
                    self._hosts.add(name, line.entry.key.get_name(), line.entry.key)

    def keys(self, host: str) -> dict[str, paramiko.PKey]:
        """Return the first key of each type of a host, by type."""
        return dict(self._hosts.lookup(host) or {})

    def revoked(self, key: paramiko.PKey) -> bool:
        """Return whether a key is revoked."""
        return key.asbytes() in self._revoked


class HostKeyError(paramiko.SSHException):
    """A host key is not accepted."""


def fingerprint(key: paramiko.PKey) -> str:
    """Return a public key's fingerprint as `ssh-keygen -l` prints it (RFC 4648 base64, unpadded SHA-256)."""
    digest = hashlib.sha256(key.asbytes()).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


class HostKeyRule(paramiko.MissingHostKeyPolicy):
    """The accepted keys of one host, checked before login; others raise HostKeyError.

    It replaces fabric's policy, which accepts every key (fabric issue 2071). name: the host's name in errors.
    expected: the fingerprint in the inventory.
    """

    def __init__(
        self, connection: fabric.Connection, name: str, expected: str | None, known: KnownHosts
    ) -> None:
        self._name = name
        self._expected = expected
        self._known = known
        self._host = connection.host if connection.port == 22 else f"[{connection.host}]:{connection.port}"
        connection.client.set_missing_host_key_policy(self)
        if expected is None:
            for kind, key in known.keys(self._host).items():
                connection.client.get_host_keys().add(self._host, kind, key)

    def missing_host_key(self, client: Any, hostname: str, key: paramiko.PKey) -> None:
        """Check the key of a host without a key in known_hosts, or if known_hosts is not used."""
        self._refuse_revoked(key)
        if self._expected is None:
            raise self._unknown(key)
        if fingerprint(key) != self._expected:
            raise HostKeyError(
                f"{self._name}: {self._host} has the host key {fingerprint(key)} ({key.get_name()}),"
                f" but the inventory has {self._expected}: find out why before you change it"
            )

    def changed(self, error: paramiko.BadHostKeyException) -> HostKeyError:
        """Return the error for a host whose key differs from known_hosts."""
        try:
            self._refuse_revoked(error.key)
        except HostKeyError as refused:
            return refused
        return HostKeyError(
            f"{self._name}: the host key of {self._host} has CHANGED: it is {fingerprint(error.key)},"
            f" known_hosts has {fingerprint(error.expected_key)}: this may be a man-in-the-middle attack. If"
            f" you know why it changed, remove the old one with"
            f" `{shlex.join(['ssh-keygen', '-R', self._host])}`"
        )

    def _refuse_revoked(self, key: paramiko.PKey) -> None:
        if self._known.revoked(key):
            raise HostKeyError(
                f"{self._name}: {self._host} has the host key {fingerprint(key)} ({key.get_name()}), which"
                f" known_hosts marks as {REVOKED}: it may be compromised; create a new key on the machine"
            )

    def _unknown(self, key: paramiko.PKey) -> HostKeyError:
        host, _, port = self._host.removeprefix("[").partition("]:")
        scan = ["ssh-keyscan", *(["-p", port] if port else []), "-t", key.get_name(), host]
        return HostKeyError(
            f"{self._name}: the host key of {self._host} is unknown, {fingerprint(key)} ({key.get_name()}):"
            f" compare it with the output of `ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub` there, then add it"
            f" with `{shlex.join(scan)} >> ~/.ssh/known_hosts`, or as `host_key:` of the inventory"
        )


def read_known_hosts() -> KnownHosts:
    """Read both files. Raises MachineError with file and line if one cannot be read."""
    return KnownHosts([line for file in (user_file(), SYSTEM_FILE) for line in _read(file)])


def user_file() -> Path:
    """Return the current user's known_hosts."""
    return Path.home() / ".ssh/known_hosts"


def _read(file: Path) -> Iterator[KnownHostLine]:
    try:
        texts = file.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        raise MachineError(f"{file} cannot be read: {error.strerror}") from None
    for number, text in enumerate(texts, 1):
        try:
            line = _line(text)
        except (ValueError, AssertionError, paramiko.SSHException, InvalidHostKey) as error:
            raise MachineError(
                f"{file}:{number}: this line cannot be read ({error}): correct it, or remove it with"
                f" `sed -i {number}d {file}`"
            ) from None
        if line is not None:
            yield line


def _line(text: str) -> KnownHostLine | None:
    """Parse a line; returns None if it is irrelevant."""
    fields = text.split()
    if not fields or fields[0].startswith("#"):
        return None
    marker = fields.pop(0) if fields[0].startswith("@") else ""
    if marker == CERT_AUTHORITY:
        return None
    if marker not in {"", REVOKED}:
        raise ValueError(f"unknown marker {marker}")
    if len(fields) < 3:
        raise ValueError("it needs a host, a key type and the key")
    if fields[1] not in KINDS:
        return None
    entry = HostKeyEntry.from_line(" ".join(fields))
    for name in entry.hostnames:
        if name.startswith(HASHED):
            paramiko.HostKeys.hash_host("", name)  # raises if it is not a hash
    return KnownHostLine(entry, revoked=marker == REVOKED)
