"""Mininet's nodes as this testbed needs them: quick to start, and with links that somebody else has made.

Mininet supplies the hosts: a shell in namespaces of its own, `cmd`, `popen`, the objects that its users know
and its prompt needs. What it would do slowly (a process or more for each interface, through ifconfig) is done
in batches by `Network`, and these objects are then told what there is.
"""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mininet.link import Intf
from mininet.net import Mininet
from mininet.node import Host, Node, Switch

from testbed.network.layout import Layout
from testbed.sandbox.tools import RUN_TOOLS, check_tools


class PlainHost(Host):  # type: ignore[misc]
    """A Mininet host that is configured from outside."""

    isSetup = True  # noqa: N815 (Mininet's name: skips its search for ifconfig, which is not needed)


class Lan(Switch):  # type: ignore[misc]
    """A region's bridge, in the root namespace. It has a shell only if somebody gives it a command."""

    isSetup = True  # noqa: N815

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802
        """Put off until `cmd`."""
        self.pid = os.getpid()

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command in the root namespace, as Mininet's prompt may ask."""
        if self.shell is None:
            super().startShell()
        return super().cmd(*args, **kwargs)


class PresentIntf(Intf):  # type: ignore[misc]
    """An interface that is made and configured elsewhere."""

    def __init__(self, name: str, node: Node, *, mac: str | None = None, address: str | None = None) -> None:
        super().__init__(name, node=node, moveIntfFn=lambda *_: None)
        self.mac, self.ip = mac, address

    def config(self, **_: Any) -> None:
        """There is nothing to do."""

    def updateIP(self) -> str | None:  # noqa: N802
        """Its address; Mininet's own asks ifconfig."""
        return self.ip

    def isUp(self, setUp: bool = False) -> bool:  # noqa: N802
        """Whether it is up; Mininet's own asks ifconfig."""
        return "UP" in self.cmd("ip", "link", "show", self.name).partition(">")[0]


class PresentLink:
    """A link between two interfaces that are there already, for Mininet's `links` and `net` commands."""

    def __init__(self, one: Intf, other: Intf) -> None:
        self.intf1, self.intf2 = one, other
        one.link = other.link = self

    def __str__(self) -> str:
        return "<->".join(f"{intf.node}:{intf}" for intf in (self.intf1, self.intf2))

    __repr__ = __str__

    def status(self) -> str:
        """As Mininet's own links."""
        return f"({self.intf1.isUp()} {self.intf2.isUp()})"

    def stop(self) -> None:
        """The link goes with its namespaces."""

    delete = stop


def make_mininet() -> Mininet:
    """An empty Mininet that neither asks for uid 0 nor raises the machine's limits, as its `init` would.

    Raises MachineError without mnexec.
    """
    check_tools({"mnexec": RUN_TOOLS["mnexec"]})
    Mininet.inited = True
    return Mininet(controller=None, build=False, host=PlainHost, switch=Lan)


def add_hosts(net: Mininet, names: Sequence[str]) -> None:
    """Start the hosts' shells, as many at a time as there are processors, and add them in this order."""
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="shell") as pool:
        for host in pool.map(PlainHost, names):
            net.hosts.append(host)
            net.nameToNode[host.name] = host


def tell(net: Mininet, layout: Layout) -> None:
    """Tell Mininet's objects about the interfaces and links of the layout."""
    ends = {
        each.outside or f"{each.name}@{each.host}": PresentIntf(
            each.name, net[each.host], mac=each.mac, address=each.address
        )
        for each in layout.interfaces
    }
    for bridge in layout.bridges:
        lan = net.addSwitch(bridge.name, dpid="1", inNamespace=False)
        for port in bridge.ports:
            ends[port.inside or f"{port.name}@{bridge.name}"] = PresentIntf(port.name, lan)
            if port.host:
                net.links.append(PresentLink(ends[port.name], ends[f"{port.name}@{bridge.name}"]))
    net.links += [
        PresentLink(ends[wiring.a_interface], ends[wiring.b_interface])
        for wiring in layout.wirings
        if wiring.a_interface in ends and wiring.b_interface in ends  # not where one end is a tunnel
    ]
    net.links += [PresentLink(*(ends[f"{each.name}@{each.host}"] for each in pair)) for pair in layout.pairs]


def end_shells(nodes: Iterable[Host]) -> None:
    """End the hosts' shells; with the last process of a namespace, its interfaces go."""
    for node in nodes:
        node.terminate()
