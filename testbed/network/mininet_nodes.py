"""Mininet nodes for this testbed, which start quickly and use links that exist already.

Mininet supplies the hosts: a shell in its own namespaces, `cmd`, `popen`, and the objects that its users know
and its prompt needs. Mininet's slow steps (one or more processes for each interface, through ifconfig) are
done in batches by `Network`; afterwards the layout is registered with Mininet's objects.

The runner's Mininet holds the hosts' namespaces. The prompt has its own objects (`AttachedHost`): each is a
separate shell, which its first command attaches to the same namespaces (mnexec -a). Commands at the prompt
therefore run beside the host's node process, and block only the prompt.
"""

import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mininet.link import Intf
from mininet.net import Mininet
from mininet.node import Host, Node, Switch

from experiments.planned.plan import Plan
from testbed.network.network_layout import NetworkLayout, make_layout
from testbed.sandbox.requirements import RUN_TOOLS, check_tools


class PlainHost(Host):  # type: ignore[misc]
    """A Mininet host that is configured from outside."""

    isSetup = True  # noqa: N815 (Mininet's name; skips its search for ifconfig, which is not needed)


class LanBridge(Switch):  # type: ignore[misc]
    """A region's bridge, in the root namespace. Its shell is started by the first command."""

    isSetup = True  # noqa: N815

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802
        """Defer the start of the shell until `cmd`."""
        self.pid = os.getpid()

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command in the root namespace, for Mininet's prompt."""
        if self.shell is None:
            super().startShell()
        return super().cmd(*args, **kwargs)


class ExistingIntf(Intf):  # type: ignore[misc]
    """An interface that was created and configured elsewhere."""

    def __init__(self, name: str, node: Node, *, mac: str | None = None, address: str | None = None) -> None:
        super().__init__(name, node=node, moveIntfFn=lambda *_: None)
        self.mac, self.ip = mac, address

    def config(self, **_: Any) -> None:
        """Do nothing: the interface is configured already."""

    def updateIP(self) -> str | None:  # noqa: N802
        """Return its address without running ifconfig, as Mininet does."""
        return self.ip

    def isUp(self, setUp: bool = False) -> bool:  # noqa: N802
        """Return whether it is up without running ifconfig, as Mininet does."""
        return "UP" in self.cmd("ip", "link", "show", self.name).partition(">")[0]


class ExistingLink:
    """A link between two existing interfaces, for Mininet's `links` and `net` commands."""

    def __init__(self, one: Intf, other: Intf) -> None:
        self.intf1, self.intf2 = one, other
        one.link = other.link = self

    def __str__(self) -> str:
        return "<->".join(f"{intf.node}:{intf}" for intf in (self.intf1, self.intf2))

    __repr__ = __str__

    def status(self) -> str:
        """Return its status, in Mininet's format."""
        return f"({self.intf1.isUp()} {self.intf2.isUp()})"

    def stop(self) -> None:
        """Do nothing: the link ends with its namespaces."""

    delete = stop


def make_mininet() -> Mininet:
    """Create an empty Mininet without its `init`, which requires uid 0 and raises the machine's limits.

    Raises MachineError if mnexec is not installed.
    """
    check_tools({"mnexec": RUN_TOOLS["mnexec"]})
    Mininet.inited = True
    return Mininet(controller=None, build=False, host=PlainHost, switch=LanBridge)


def add_hosts(net: Mininet, names: Sequence[str], check: Callable[[], None] = lambda: None) -> None:
    """Start the hosts' shells, in parallel on all processors, and add the hosts in this order.

    check: called after each host; may raise to abort.
    """
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="shell") as pool:
        for host in pool.map(PlainHost, names):
            net.hosts.append(host)
            net.nameToNode[host.name] = host
            check()


def register_layout(net: Mininet, layout: NetworkLayout) -> None:
    """Register the interfaces and links of the layout with Mininet's objects."""
    ends = {
        each.outside or f"{each.name}@{each.host}": ExistingIntf(
            each.name, net[each.host], mac=each.mac, address=each.address
        )
        for each in layout.interfaces
    }
    for bridge in layout.bridges:
        lan = net.addSwitch(bridge.name, dpid="1", inNamespace=False)
        for port in bridge.ports:
            ends[port.inside or f"{port.name}@{bridge.name}"] = ExistingIntf(port.name, lan)
            if port.host:
                net.links.append(ExistingLink(ends[port.name], ends[f"{port.name}@{bridge.name}"]))
    net.links += [
        ExistingLink(ends[wiring.a_interface], ends[wiring.b_interface])
        for wiring in layout.wirings
        if wiring.a_interface in ends and wiring.b_interface in ends  # neither end is a tunnel
    ]
    net.links += [ExistingLink(*(ends[f"{each.name}@{each.host}"] for each in pair)) for pair in layout.pairs]


def stop_shells(nodes: Iterable[Host]) -> None:
    """Stop the hosts' shells; the kernel removes a namespace's interfaces with its last process."""
    for node in nodes:
        node.terminate()


class AttachedHost(PlainHost):
    """A host whose namespaces belong to the process `holder`."""

    def __init__(self, name: str, holder: int) -> None:
        self._holder = holder
        super().__init__(name)

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802
        """Defer the start until the first command; until then the host has its holder's pid."""
        self.pid = self._holder

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802
        """Send a command to the host's shell, as Mininet does."""
        self._attach()
        super().sendCmd(*args, **kwargs)

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        """Send a command to the host's shell and wait for its output, as Mininet does."""
        self._attach()
        return super().cmd(*args, **kwargs)

    def terminate(self) -> None:
        """End this object's shell, but not the holder."""
        if self.shell is not None:
            if self.shell.poll() is None:
                os.killpg(self.shell.pid, signal.SIGHUP)
            self.cleanup()

    def _attach(self) -> None:
        if self.shell is None:
            self.inNamespace = False  # so that mnexec does not create one
            super().startShell(mnopts=f"-cda{self._holder}")
            self.inNamespace = True
            self.pid = self._holder


def attached_network(plan: Plan, pids: Mapping[str, int]) -> Mininet:
    """Return the run's network. pids: the process that holds each host's namespaces, by host."""
    net = make_mininet()
    for host in plan.hosts:
        attached = AttachedHost(host.name, pids[host.name])
        net.hosts.append(attached)
        net.nameToNode[host.name] = attached
    register_layout(net, make_layout(plan))
    return net
