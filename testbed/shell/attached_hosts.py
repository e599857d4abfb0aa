"""The run's hosts as Mininet objects in the prompt's own process.

The runner's Mininet holds the hosts' namespaces; here each host is a separate shell, attached to the same
namespaces (mnexec -a) by its first command. So commands at the prompt run beside the host's node process, and
block nothing but the prompt.
"""

import os
import signal
from collections.abc import Mapping
from typing import Any

from mininet.net import Mininet

from experiments.plan import Plan
from testbed.network.mininet_nodes import PlainHost, make_mininet, register_layout
from testbed.network.network_layout import make_layout


class AttachedHost(PlainHost):
    """A host whose namespaces belong to the process `holder`."""

    def __init__(self, name: str, holder: int) -> None:
        self._holder = holder
        super().__init__(name)

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802
        """Deferred until the first command; until then the host has its holder's pid."""
        self.pid = self._holder

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802
        """Give the host's shell a command, as Mininet does."""
        self._attach()
        super().sendCmd(*args, **kwargs)

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        """Give the host's shell a command and wait for its output, as Mininet does."""
        self._attach()
        return super().cmd(*args, **kwargs)

    def terminate(self) -> None:
        """End our own shell, but not the holder."""
        if self.shell is not None:
            if self.shell.poll() is None:
                os.killpg(self.shell.pid, signal.SIGHUP)
            self.cleanup()

    def _attach(self) -> None:
        if self.shell is None:
            self.inNamespace = False  # mnexec is not to make one
            super().startShell(mnopts=f"-cda{self._holder}")
            self.inNamespace = True
            self.pid = self._holder


def attached_network(plan: Plan, pids: Mapping[str, int]) -> Mininet:
    """The run's network. pids: the process that holds each host's namespaces, by host."""
    net = make_mininet()
    for host in plan.hosts:
        attached = AttachedHost(host.name, pids[host.name])
        net.hosts.append(attached)
        net.nameToNode[host.name] = attached
    register_layout(net, make_layout(plan))
    return net
