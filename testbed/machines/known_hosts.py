"""The host keys that this user and this machine know: ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts.

paramiko parses lines, but does not support markers. Certificates are not used, so `@cert-authority` is
ignored; a key that is `@revoked` anywhere is never accepted. Unknown key types are skipped. A line that
cannot be parsed is an error: it could be the one that matters. Source: sshd(8), "SSH_KNOWN_HOSTS FILE
FORMAT".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

from testbed.errors import MachineError

SYSTEM_FILE = Path("/etc/ssh/ssh_known_hosts")
CERT_AUTHORITY, REVOKED = "@cert-authority", "@revoked"
HASHED = "|1|"
KINDS = frozenset(kind for key in paramiko.key_classes for kind in key.identifiers())


@dataclass(frozen=True, slots=True)
class Line:
    """Host names, possibly hashed, and their key; or a revoked key."""

    entry: HostKeyEntry
    revoked: bool


class KnownHosts:
    """The known keys. Hosts are named as in the files: `[NAME]:PORT` for a port other than 22."""

    def __init__(self, lines: list[Line]) -> None:
        self._revoked = {line.entry.key.asbytes() for line in lines if line.revoked}
        self._hosts = paramiko.HostKeys()
        for line in reversed(lines):  # one that is added replaces an earlier one
            if not line.revoked and not self.revoked(line.entry.key):
                for name in line.entry.hostnames:
                    self._hosts.add(name, line.entry.key.get_name(), line.entry.key)

    def keys(self, host: str) -> dict[str, paramiko.PKey]:
        """The keys of a host by their type, the first of each."""
        return dict(self._hosts.lookup(host) or {})

    def revoked(self, key: paramiko.PKey) -> bool:
        """Whether a key is revoked."""
        return key.asbytes() in self._revoked


def read_known_hosts() -> KnownHosts:
    """Both files. Raises MachineError with file and line for what cannot be read."""
    return KnownHosts([line for file in (user_file(), SYSTEM_FILE) for line in _read(file)])


def user_file() -> Path:
    """The current user's known_hosts."""
    return Path.home() / ".ssh/known_hosts"


def _read(file: Path) -> Iterator[Line]:
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


def _line(text: str) -> Line | None:
    """The parsed line; None for one that does not concern us."""
    fields = text.split()
    if not fields or fields[0].startswith("#"):
        return None
    marker = fields.pop(0) if fields[0].startswith("@") else ""
    if marker == CERT_AUTHORITY:
        return None
    if marker not in {"", REVOKED}:
        raise ValueError(f"no marker is called {marker}")
    if len(fields) < 3:
        raise ValueError("it needs a host, a kind of key and the key")
    if fields[1] not in KINDS:
        return None
    entry = HostKeyEntry.from_line(" ".join(fields))
    for name in entry.hostnames:
        if name.startswith(HASHED):
            paramiko.HostKeys.hash_host("", name)  # raises if it is no hash
    return Line(entry, revoked=marker == REVOKED)
