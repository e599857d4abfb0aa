"""Connections to the machines of an inventory: to all at once, or kept and made anew where one broke."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from testbed.errors import TestbedError
from testbed.machines.inventory import Machine
from testbed.machines.on_each import on_each
from testbed.machines.ssh import Connection, connect


@contextmanager
def connected(machines: Sequence[Machine]) -> Iterator[list[Connection | TestbedError]]:
    """A connection to each of these, or why there is none, in their order; closed at the end."""
    with ExitStack() as stack:
        connections = on_each(connect, machines)
        for connection in connections:
            if isinstance(connection, Connection):
                stack.callback(connection.close)
        yield connections


class Logins:
    """A connection to each machine, kept for as long as it stands.

    Threads may share it if each machine has one user at a time.
    """

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
