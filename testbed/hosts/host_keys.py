"""Which host keys are taken: a fingerprint of the inventory if it has one, otherwise known_hosts (sshd(8)).

What is unknown is refused with the command that adds it, and nothing is ever accepted silently, on machines
in between (ProxyJump of ssh_config(5)) neither.
"""

import base64
import hashlib
import shlex
from pathlib import Path
from typing import Any

import fabric
import paramiko

from testbed.hosts.inventory import Machine

SYSTEM_KNOWN_HOSTS = Path("/etc/ssh/ssh_known_hosts")


class RefusedError(paramiko.SSHException):
    """A host key that we do not take."""


def fingerprint(key: paramiko.PKey) -> str:
    """A public key's fingerprint as `ssh-keygen -l` prints it (RFC 4648 base64 of SHA-256, unpadded)."""
    digest = hashlib.sha256(key.asbytes()).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def check(connection: fabric.Connection, machine: Machine) -> None:
    """Replace fabric's policy, which takes every key (fabric issue 2071), before a connection is opened.

    What is not taken then raises RefusedError, or paramiko.BadHostKeyException.
    """
    if machine.host_key is not None:
        connection.client.set_missing_host_key_policy(_Fingerprint(machine))
    else:
        _ask_known_hosts(connection, machine.name)
    gateway = connection.gateway
    while isinstance(gateway, fabric.Connection):
        _ask_known_hosts(gateway, f"{machine.name}: on the way there, {gateway.host}")
        gateway = gateway.gateway


def changed(machine: Machine, connection: fabric.Connection, error: paramiko.BadHostKeyException) -> str:
    """What to tell of a key that is not the one of known_hosts."""
    host = connection.host if connection.port == 22 else f"[{connection.host}]:{connection.port}"
    return (
        f"{machine.name}: the host key of {host} has CHANGED: it is {fingerprint(error.key)}, known_hosts has"
        f" {fingerprint(error.expected_key)}: somebody may be in between. If you know why it changed, forget"
        f" the old one with `{shlex.join(['ssh-keygen', '-R', host])}`"
    )


class _Fingerprint(paramiko.MissingHostKeyPolicy):
    """Takes the key that the inventory names, and no other."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def missing_host_key(self, client: Any, hostname: str, key: paramiko.PKey) -> None:
        if fingerprint(key) != self._machine.host_key:
            raise RefusedError(
                f"{self._machine.name}: {hostname} has the host key {fingerprint(key)} ({key.get_name()}),"
                f" but the inventory says {self._machine.host_key}: find out why before you change it"
            )


class _Known(paramiko.MissingHostKeyPolicy):
    """Refuses what known_hosts does not have, and says how to add it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def missing_host_key(self, client: Any, hostname: str, key: paramiko.PKey) -> None:
        host, _, port = hostname.removeprefix("[").partition("]:")
        scan = ["ssh-keyscan", *(["-p", port] if port else []), "-t", key.get_name(), host]
        raise RefusedError(
            f"{self._name}: the host key of {hostname} is unknown, {fingerprint(key)} ({key.get_name()}):"
            f" compare it with what `ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub` prints there, then add it"
            f" with `{shlex.join(scan)} >> ~/.ssh/known_hosts`, or as `host_key:` of the inventory"
        )


def _ask_known_hosts(connection: fabric.Connection, name: str) -> None:
    connection.client.load_system_host_keys()
    if SYSTEM_KNOWN_HOSTS.is_file():
        connection.client.load_system_host_keys(str(SYSTEM_KNOWN_HOSTS))
    connection.client.set_missing_host_key_policy(_Known(name))
