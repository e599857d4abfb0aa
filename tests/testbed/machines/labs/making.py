"""How machines of the lab are made: options, and the files that differ between machines.

Source: sshd_config(5).
"""

from dataclasses import dataclass
from pathlib import Path

from tests.testbed.machines.labs.keys import Key

CONFIG, HOST_KEY, LOGINS = "/etc/ssh/sshd_config", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/logins"
SSHD_CONFIG = f"""\
AddressFamily inet
HostKey {HOST_KEY}
AuthorizedKeysFile {LOGINS}/%u
PidFile none
UsePAM no
UseDNS no
PermitRootLogin yes
PasswordAuthentication yes
PrintMotd no
PrintLastLog no
MaxStartups 200
MaxSessions 200
LogLevel VERBOSE
Subsystem sftp internal-sftp
"""
"""Passwords are offered, so that a client that would ask for one does."""


@dataclass(frozen=True, slots=True)
class Make:
    """How the machines of a lab are made."""

    login: Key
    """The key of logins."""
    folder: str = "/var/tmp/cutset"
    """The inventory's folder."""
    mtu: int = 1600
    """MTU of the experiment network: large enough for 1500 bytes in a tunnel. A site's may be 1500."""
    user: str = "root"
    """The login user."""
    sudo: bool = False
    """Whether this user, not being root, may become root without a password."""
    files: Path | None = None
    """A folder with files that the machines have besides those of the machine of the tests."""


def own_files(name: str, address: str, host_key: Key, make: Make) -> dict[str, bytes]:
    """Return the files that differ between machines."""
    return {
        CONFIG: SSHD_CONFIG.encode(),
        HOST_KEY: host_key.private,
        f"{LOGINS}/{make.user}": f"{make.login.public}\n".encode(),
        "/etc/hostname": f"{name}\n".encode(),
        "/etc/hosts": f"127.0.0.1 localhost\n{address} {name}\n".encode(),
    }
