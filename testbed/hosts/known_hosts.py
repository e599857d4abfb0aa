"""The host keys that this user and this machine know: ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts.

Certificates are not used, so `@cert-authority` says nothing to us; a key that is `@revoked` anywhere is taken
from nobody. Kinds of keys that are not known here are passed over. A line that cannot be read is an error: it
could be the one that matters. Source: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".
"""

import base64
import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko

from testbed.errors import MachineError

SYSTEM_FILE = Path("/etc/ssh/ssh_known_hosts")
CERT_AUTHORITY, REVOKED = "@cert-authority", "@revoked"
HASHED = "|1|"
KINDS = frozenset(kind for key in paramiko.key_classes for kind in key.identifiers())


@dataclass(frozen=True, slots=True)
class Line:
    """Hosts' names, possibly hashed, and the key that they have; or that nobody may have any more."""

    names: tuple[str, ...]
    key: paramiko.PKey
    revoked: bool


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """What is known. Hosts are named as in the files: `[NAME]:PORT` for another port than 22."""

    lines: tuple[Line, ...]

    def keys(self, host: str) -> dict[str, paramiko.PKey]:
        """The keys of a host by their kind, the first of each."""
        found: dict[str, paramiko.PKey] = {}
        for line in self.lines:
            if (
                not line.revoked
                and not self.revoked(line.key)
                and any(_is(name, host) for name in line.names)
            ):
                found.setdefault(line.key.get_name(), line.key)
        return found

    def revoked(self, key: paramiko.PKey) -> bool:
        """Whether this key is to be taken from nobody."""
        return any(line.revoked and line.key.asbytes() == key.asbytes() for line in self.lines)


def read_known_hosts() -> KnownHosts:
    """Both files. Raises MachineError with file and line for what cannot be read."""
    return KnownHosts(tuple(line for file in (user_file(), SYSTEM_FILE) for line in _read(file)))


def user_file() -> Path:
    """Of whoever runs this."""
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
        except (ValueError, paramiko.SSHException) as error:
            raise MachineError(
                f"{file}:{number}: this line cannot be read ({error}): correct it, or remove it with"
                f" `sed -i {number}d {file}`"
            ) from None
        if line is not None:
            yield line


def _line(text: str) -> Line | None:
    """None for what says nothing to us. Raises ValueError, SSHException."""
    fields = text.split()
    marker = fields.pop(0) if text.lstrip().startswith("@") else ""
    if marker == CERT_AUTHORITY or (not marker and (not fields or fields[0].startswith("#"))):
        return None
    if marker not in {"", REVOKED}:
        raise ValueError(f"no marker is called {marker}")
    if len(fields) < 3:
        raise ValueError("it needs a host, a kind of key and the key")
    names, kind, key, *_ = fields
    if kind not in KINDS:
        return None
    for name in names.split(","):
        if name.startswith(HASHED):
            _salt_and_hash(name)
    return Line(
        tuple(names.split(",")),
        paramiko.PKey.from_type_string(kind, base64.b64decode(key, validate=True)),
        revoked=marker == REVOKED,
    )


def _is(name: str, host: str) -> bool:
    if not name.startswith(HASHED):
        return name == host
    salt, hashed = _salt_and_hash(name)
    return hmac.digest(salt, host.encode(), "sha1") == hashed


def _salt_and_hash(name: str) -> tuple[bytes, bytes]:
    """Of a name that is hidden (HashKnownHosts of ssh_config(5)). Raises ValueError."""
    salt, hashed = name.removeprefix(HASHED).split("|")
    return base64.b64decode(salt, validate=True), base64.b64decode(hashed, validate=True)
