"""Decides which host keys are accepted: a fingerprint of the inventory if it has one, otherwise known_hosts
(sshd(8)).

An unknown key is refused with the command that adds it; nothing is ever accepted silently, nor on jump hosts
(ProxyJump of ssh_config(5)). What known_hosts calls revoked is refused in any case.
"""

import base64
import hashlib
import shlex
from typing import Any

import fabric
import paramiko

from testbed.machines.known_hosts import REVOKED, KnownHosts


class HostKeyError(paramiko.SSHException):
    """A host key is not accepted."""


def fingerprint(key: paramiko.PKey) -> str:
    """A public key's fingerprint as `ssh-keygen -l` prints it (RFC 4648 base64 of SHA-256, unpadded)."""
    digest = hashlib.sha256(key.asbytes()).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


class HostKeyRule(paramiko.MissingHostKeyPolicy):
    """Decides for one host, before login, which keys are accepted; others raise HostKeyError.

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
        """Called for a host without a key in known_hosts, or if known_hosts is not used."""
        self._refuse_revoked(key)
        if self._expected is None:
            raise self._unknown(key)
        if fingerprint(key) != self._expected:
            raise HostKeyError(
                f"{self._name}: {self._host} has the host key {fingerprint(key)} ({key.get_name()}),"
                f" but the inventory says {self._expected}: find out why before you change it"
            )

    def changed(self, error: paramiko.BadHostKeyException) -> HostKeyError:
        """The error for a host whose key differs from known_hosts."""
        try:
            self._refuse_revoked(error.key)
        except HostKeyError as refused:
            return refused
        return HostKeyError(
            f"{self._name}: the host key of {self._host} has CHANGED: it is {fingerprint(error.key)},"
            f" known_hosts has {fingerprint(error.expected_key)}: somebody may be in between. If you know why"
            f" it changed, forget the old one with `{shlex.join(['ssh-keygen', '-R', self._host])}`"
        )

    def _refuse_revoked(self, key: paramiko.PKey) -> None:
        if self._known.revoked(key):
            raise HostKeyError(
                f"{self._name}: {self._host} has the host key {fingerprint(key)} ({key.get_name()}), which"
                f" known_hosts calls {REVOKED}: whoever has it may be somebody else; give the machine another"
            )

    def _unknown(self, key: paramiko.PKey) -> HostKeyError:
        host, _, port = self._host.removeprefix("[").partition("]:")
        scan = ["ssh-keyscan", *(["-p", port] if port else []), "-t", key.get_name(), host]
        return HostKeyError(
            f"{self._name}: the host key of {self._host} is unknown, {fingerprint(key)} ({key.get_name()}):"
            f" compare it with what `ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub` prints there, then add it"
            f" with `{shlex.join(scan)} >> ~/.ssh/known_hosts`, or as `host_key:` of the inventory"
        )
