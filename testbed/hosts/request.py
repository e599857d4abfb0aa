"""What a machine is asked by `testbed.hosts.examination`: what a run needs of it. Pure."""

from typing import Any

from testbed.hosts.inventory import Inventory, Machine
from testbed.hosts.placement import VXLAN_OVERHEAD_BYTES
from testbed.links.selection import TRY, TRY_TOOLS
from testbed.sandbox.commands import sandbox_command
from testbed.sandbox.tools import RUN_TOOLS
from topologies.shape import Shape

MACHINE_TOOLS = {**RUN_TOOLS, **TRY_TOOLS}
"""Programs, and the Debian packages that bring them."""
PROBE_BYTES = Shape().mtu_bytes + VXLAN_OVERHEAD_BYTES
"""Of packets that links of the usual MTU put into the experiment network."""


def request(inventory: Inventory, machine: Machine) -> dict[str, Any]:
    """What a machine is asked: see `testbed.hosts.examination`."""
    tunnel = ["ip", "link", "add", "name", "cutset-try", "type", "vxlan", "id", "1"]
    ends = ["local", "192.0.2.1", "remote", "192.0.2.2", "dstport", str(inventory.vxlan_port)]
    attempts = {"namespaces": ["true"], "netem": list(TRY), "tunnel": [*tunnel, *ends]}  # see facts.Attempts
    return {
        "tools": sorted(MACHINE_TOOLS),
        "folder": machine.folder,
        "port": inventory.vxlan_port,
        "peers": peers(inventory, machine),
        "probe_bytes": PROBE_BYTES,
        "attempts": {
            name: sandbox_command(command, user_namespace=False) for name, command in attempts.items()
        },
    }


def peers(inventory: Inventory, machine: Machine) -> list[tuple[str, str]]:
    """Pairs of an own address and another machine's that have to reach each other."""
    pairs = {
        (machine.address(link), other.address(link)): None
        for other in inventory.machines
        if other.name != machine.name
        for link in _networks(machine, other)
    }
    return [(own, peer) for own, peer in pairs if own is not None and peer is not None]


def _networks(one: Machine, other: Machine) -> list[str]:
    """The links that have networks of their own, of which both are; "" is the one that all share."""
    return [*(link for link in one.links if link in other.links), ""]
