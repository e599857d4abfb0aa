"""The route to a machine from ssh_config(5): a connection that is not open yet, and the hops before it.

A file that cannot be parsed is an error with file and line. Fabric's own configuration files are not read,
because ssh(1) would not use them.
"""

from collections.abc import Iterator
from pathlib import Path

import fabric
import paramiko

from testbed.errors import MachineError
from testbed.machines.inventory import InventoryMachine

SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")


def user_config() -> Path:
    """Return the current user's configuration file."""
    return Path.home() / ".ssh/config"


def way_to(machine: InventoryMachine) -> list[fabric.Connection]:
    """Return the connections to open one after the other, the machine's own last (ProxyJump).

    Raises MachineError if the inventory's key or a configuration file cannot be read.
    """
    if machine.key is not None:
        try:
            machine.key.read_bytes()
        except OSError as error:
            raise MachineError(
                f"{machine.name}: the inventory's key {machine.key} cannot be read: {error.strerror}"
            ) from None
    config = fabric.Config(ssh_config=_read_config(), lazy=True)
    try:
        hops = [
            fabric.Connection(
                machine.control,
                user=machine.user,
                port=machine.port,
                config=config,
                connect_kwargs={"key_filename": str(machine.key)} if machine.key else {},
            )
        ]
        while isinstance(gateway := hops[-1].gateway, fabric.Connection):
            hops.append(gateway)
    except (paramiko.SSHException, ValueError, KeyError, TypeError, OSError) as error:
        raise MachineError(
            f"{machine.name}: {user_config()} or {SYSTEM_CONFIG} is invalid for {machine.control}: {error}"
        ) from None
    return hops[::-1]


def _read_config() -> paramiko.SSHConfig:
    """Read both files; the first has precedence, as in ssh(1)."""
    config = paramiko.SSHConfig()
    for file in (user_config(), SYSTEM_CONFIG):
        number = 0

        def lines(file: Path = file) -> Iterator[str]:
            nonlocal number
            with file.open() as stream:
                for number, line in enumerate(stream, 1):  # noqa: B007 (read when there is an error)
                    yield line

        try:
            config.parse(lines())
        except FileNotFoundError:
            continue
        except (paramiko.SSHException, ValueError) as error:
            raise MachineError(f"{file}:{number}: {error}") from None
        except OSError as error:
            raise MachineError(f"{file} cannot be read: {error.strerror}") from None
    return config
