"""Connections to the machines of an inventory: opened to all at once, or kept and reopened if one breaks."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from testbed.errors import TestbedError
from testbed.machines.inventory import InventoryMachine
from testbed.machines.parallel import on_each
from testbed.machines.ssh.ssh import SshConnection, connect


@contextmanager
def connected(machines: Sequence[InventoryMachine]) -> Iterator[list[SshConnection | TestbedError]]:
    """Connect to these machines; yields the connections or errors in order, and closes them at the end."""
    with ExitStack() as stack:
        connections = on_each(connect, machines)
        for connection in connections:
            if isinstance(connection, SshConnection):
                stack.callback(connection.close)
        yield connections


class ConnectionPool:
    """One connection to each machine, kept while it works.

    Threads may share the pool if only one of them uses a machine at a time.
    """

    def __init__(self, connections: Iterable[SshConnection]) -> None:
        """Create a pool with open connections, which `close` closes too."""
        self._connections = {connection.machine.name: connection for connection in connections}
        self._lock = threading.Lock()

    def to(self, machine: InventoryMachine) -> SshConnection:
        """Return a connection to a machine. Raises MachineError, UnreachableError."""
        with self._lock:
            known = self._connections.get(machine.name)
        if known is not None and known.alive:
            return known
        if known is not None:
            known.close()
        connection = connect(machine)
        with self._lock:
            self._connections[machine.name] = connection
        return connection

    def close(self) -> None:
        """Close all connections; idempotent."""
        with self._lock:
            connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            connection.close()
