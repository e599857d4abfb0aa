"""Connections to all machines of an inventory at once."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from testbed.errors import TestbedError
from testbed.hosts.inventory import Machine
from testbed.hosts.on_each import on_each
from testbed.hosts.ssh import Connection, connect


@contextmanager
def connected(machines: Sequence[Machine]) -> Iterator[list[Connection | TestbedError]]:
    """A connection to each of these, or why there is none, in their order; closed at the end."""
    with ExitStack() as stack:
        connections = on_each(connect, machines)
        for connection in connections:
            if isinstance(connection, Connection):
                stack.callback(connection.close)
        yield connections
