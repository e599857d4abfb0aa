"""A machine of an inventory as a source: starts a sender there, over a separate SSH connection.

The connection is not the one that controls the run, so that captures that fill its buffers delay no order.
The sender is started from our code on the machine (`testbed.machines.deploy`), as root, because captures are
root's.
"""

from dataclasses import dataclass

from testbed.machines.agent.files import LOCAL
from testbed.machines.deploy import our_python
from testbed.machines.inventory import Machine
from testbed.machines.shipping.limits import SILENCE_S
from testbed.machines.shipping.sender import IDLE_S
from testbed.machines.ssh import Connection, RemoteProcess, connect


@dataclass(frozen=True, slots=True)
class MachineSource:
    """folder: the run's, on the machine; code: the folder of our code on it (`testbed.machines.deploy`).
    lease_s: how long anything of the run may live there without a message from here. during_run: whether the
    run is still on and must not be disturbed.
    """

    machine: Machine
    folder: str
    code: str
    lease_s: float
    silence_s: float = SILENCE_S
    during_run: bool = True

    @property
    def name(self) -> str:
        """The machine's name."""
        return self.machine.name

    def open(self) -> "SenderStream":
        """See Source. Raises MachineError for host keys and logins, UnreachableError for the network."""
        connection = connect(self.machine)
        try:
            process = connection.open(self.command(), root=True)
        except BaseException:
            connection.close()
            raise
        process.timeout_s = self.silence_s
        return SenderStream(connection, process)

    def command(self) -> list[str]:
        """The sender's command line on the machine."""
        nice = [] if self.during_run else ["--nice", "0"]
        without = [word for name in sorted(LOCAL) for word in ("--without", name)]
        idle_s = min(IDLE_S, int(self.lease_s))
        sender = ["-m", "testbed.machines.shipping.sender", self.folder, "--idle", str(idle_s)]
        return [*our_python(self.code), *sender, *nice, *without]


@dataclass(frozen=True, slots=True)
class SenderStream:
    """A running sender and the connection to it. See Stream."""

    connection: Connection
    process: RemoteProcess

    def read(self, size: int, /) -> bytes:
        """See Stream."""
        return self.process.read(size)

    def write(self, data: bytes, /) -> None:
        """See Stream."""
        self.process.write(data)

    def said(self) -> str:
        """See Stream."""
        return self.process.said()

    def close(self) -> None:
        """See Stream. The sender reads the end of its input, and ends."""
        self.process.close()
        self.connection.close()
