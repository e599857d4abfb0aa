"""A connection to each machine, kept for as long as it stands, and made anew when asked for after that."""

import threading
from collections.abc import Iterable

from testbed.hosts.inventory import Machine
from testbed.hosts.ssh import Connection, connect


class Logins:
    """Of the machines of an inventory. Threads may share it if each machine has one user at a time."""

    def __init__(self, connections: Iterable[Connection]) -> None:
        """connections: that stand already; they are closed with the rest."""
        self._connections = {connection.machine.name: connection for connection in connections}
        self._lock = threading.Lock()

    def to(self, machine: Machine) -> Connection:
        """A connection to it. Raises MachineError, UnreachableError."""
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
        """Log out everywhere; idempotent."""
        with self._lock:
            connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            connection.close()
