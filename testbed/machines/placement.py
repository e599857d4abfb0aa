"""Placement of a plan's hosts on the machines of an inventory. Pure.

A region is placed on the machines that serve it; regions that no machine names are distributed, in order, to
the machines that name none. A region's gateway is on its first machine; its processes are spread evenly, each
to the machine of the region with the most room. WAN links between machines become tunnels, and so does a
region's LAN between every two of its machines. Each tunnel gets a capture of headers at both ends, from which
the analysis compares the machines' clocks.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from experiments.planned.changes import LinkChange
from experiments.planned.plan import CapturePlan, LinkPlan, Plan
from testbed.assignment import Assignment
from testbed.machines.inventory import Inventory, InventoryMachine, Shaping
from testbed.network.commands import OUTSIDE_MTU_BYTES
from testbed.tunnel import Tunnel
from topologies.errors import InputError
from topologies.link_parameters import LinkParameters

VXLAN_OVERHEAD_BYTES = 50
"""Outer IPv4, UDP and VXLAN headers, and the inner Ethernet header (RFC 7348, section 5)."""
VXLAN_NETWORKS = 1 << 24


@dataclass(frozen=True, slots=True)
class Placement:
    """The machine of each of the plan's hosts, by the host's name. Machines without hosts are left out."""

    machine_of: Mapping[str, InventoryMachine]

    @property
    def machines(self) -> list[InventoryMachine]:
        """The machines that take part, in the inventory's order of regions."""
        return list({machine.name: machine for machine in self.machine_of.values()}.values())

    def hosts(self, machine: InventoryMachine) -> list[str]:
        """Return the plan's hosts on a machine."""
        return [host for host, where in self.machine_of.items() if where.name == machine.name]


def place(plan: Plan, inventory: Inventory) -> Placement:
    """Place a plan on machines. Raises InputError if they cannot execute it."""
    by_region = _machines_by_region(plan, inventory)
    room = {machine.name: machine.takes for machine in inventory.machines}
    machine_of: dict[str, InventoryMachine] = {}
    for host in plan.hosts:
        choice = by_region[host.region]
        if not host.lan_link:
            machine_of[host.name] = choice[0]
            continue
        machine = max(choice, key=lambda each: room[each.name])
        room[machine.name] -= 1
        if room[machine.name] < 0:
            names = ", ".join(f"{each.name} ({each.takes})" for each in choice)
            problem = f"region {host.region} has more node processes than its machines take: {names}"
            raise _error(inventory, "takes", problem)
        machine_of[host.name] = machine
    return Placement(machine_of)


def adapted(plan: Plan, inventory: Inventory, placement: Placement, mtu_bytes: int) -> Plan:
    """Return the plan as these machines can execute it.

    The MTU of links between machines is bounded by that of their network, and captures for the comparison of
    clocks are added. mtu_bytes: of the experiment network. Raises InputError if the site emulates the links
    and a fault changes more than a link's state.
    """
    ways = list(_ways(plan, placement))
    tunnelled = {way.name for way in ways}
    if inventory.shaping is Shaping.EMULAB:
        _check_changes(plan, inventory, tunnelled)
    largest = mtu_bytes - VXLAN_OVERHEAD_BYTES
    small_regions = {way.region for way in ways}
    fit = {
        link.name: _smaller(link, largest)
        for link in plan.links
        if link.name in tunnelled or link.b in small_regions or link.a in small_regions
    }
    wires = [
        CapturePlan(f"{way.name}@{side}.wire.pcap", link=way.name, side=side, wire=True)
        for way in ways
        for _, side in way.ends
    ]
    return replace(
        plan,
        links=tuple(fit.get(link.name, link) for link in plan.links),
        captures=(*plan.captures, *wires),
        changes=tuple(
            replace(change, parameters=_fit(change.parameters, largest))
            if isinstance(change, LinkChange) and change.link in fit
            else change
            for change in plan.changes
        ),
    )


def first_network(run: str) -> int:
    """Return the first VXLAN network identifier of a run's tunnels, a hash that rarely collides."""
    return int.from_bytes(hashlib.sha256(run.encode()).digest()[:3], "big")


def assignments(
    plan: Plan, inventory: Inventory, placement: Placement, first_network: int
) -> dict[str, Assignment]:
    """Return each machine's assignment, by its name.

    first_network: the VXLAN network identifier of the run's first tunnel. Raises InputError if a machine has
    no address for a link.
    """
    tunnels: dict[str, list[Tunnel]] = {machine.name: [] for machine in placement.machines}
    behind: dict[str, dict[str, str]] = {name: {} for name in tunnels}
    for number, way in enumerate(_ways(plan, placement)):
        interface = f"t{number}"
        for (machine, side), (other, _) in (way.ends, way.ends[::-1]):
            tunnels[machine.name].append(
                Tunnel(
                    interface=interface,
                    link=way.name,
                    side=side,
                    machine=other.name,
                    local=_address(inventory, machine, way.name),
                    remote=_address(inventory, other, way.name),
                    network=(first_network + number) % VXLAN_NETWORKS,
                    port=inventory.vxlan_port,
                    mtu_bytes=OUTSIDE_MTU_BYTES,
                )
            )
            if way.region:
                behind[machine.name] |= {
                    host.name: interface
                    for host in plan.hosts
                    if host.region == way.region and placement.machine_of[host.name].name == other.name
                }
    return {
        machine.name: Assignment(
            machine.name,
            frozenset(placement.hosts(machine)),
            tuple(tunnels[machine.name]),
            behind[machine.name],
            inventory.shaping is Shaping.HOSTS,
        )
        for machine in placement.machines
    }


def _machines_by_region(plan: Plan, inventory: Inventory) -> dict[str, list[InventoryMachine]]:
    regions = [region.name for region in plan.regions]
    for number, machine in enumerate(inventory.machines):
        for region in machine.serves:
            if region not in regions:
                problem = f"the topology has no region {region}; it has {', '.join(regions)}"
                raise _error(inventory, f"machines.{number}.serves", problem)
    found = {
        region: [machine for machine in inventory.machines if region in machine.serves] for region in regions
    }
    free = [machine for machine in inventory.machines if not machine.serves]
    homeless = [region for region in regions if not found[region]]
    if homeless and not free:
        problem = f"no machine serves {', '.join(homeless)}; each serves other regions"
        raise _error(inventory, "machines", problem)
    for number, region in enumerate(homeless):
        found[region].append(free[number % len(free)])
    return found


_End = tuple[InventoryMachine, str]
"""A machine, and its name in captures: a region's, or the machine's if both are in one region."""


@dataclass(frozen=True, slots=True)
class _Way:
    """A way between two machines that becomes a tunnel. region: if it is part of a LAN."""

    name: str
    ends: tuple[_End, _End]
    region: str | None = None


def _ways(plan: Plan, placement: Placement) -> Iterator[_Way]:
    gateways = {region.name: placement.machine_of[region.gateway] for region in plan.regions}
    for link in plan.links:
        if link.kind == "wan" and gateways[link.a].name != gateways[link.b].name:
            yield _Way(link.name, ((gateways[link.a], link.a), (gateways[link.b], link.b)))
    for region in plan.regions:
        here = [placement.machine_of[host.name] for host in plan.hosts if host.region == region.name]
        for one, other in combinations({machine.name: machine for machine in here}.values(), 2):
            name = f"{region.name}~{one.name}~{other.name}"
            yield _Way(name, ((one, one.name), (other, other.name)), region.name)


def _address(inventory: Inventory, machine: InventoryMachine, link: str) -> str:
    found = machine.address(link)
    if found is None:
        raise _error(inventory, "machines", f"{machine.name} has no address for the link {link}")
    return found


def _check_changes(plan: Plan, inventory: Inventory, tunnelled: set[str]) -> None:
    parameters_of = {link.name: {link.forward, link.backward} for link in plan.links}
    for change in plan.changes:
        if not isinstance(change, LinkChange) or change.link not in tunnelled:
            continue
        if change.parameters not in parameters_of[change.link]:
            raise _error(
                inventory,
                "shaping",
                f"the site's links shape {change.link}, so the fault {change.fault} cannot change it:"
                " only cuts are possible; use `shaping: hosts`",
            )


def _smaller(link: LinkPlan, largest: int) -> LinkPlan:
    return replace(link, forward=_fit(link.forward, largest), backward=_fit(link.backward, largest))


def _fit(parameters: LinkParameters, largest: int) -> LinkParameters:
    return replace(parameters, mtu_bytes=min(parameters.mtu_bytes, largest))


def _error(inventory: Inventory, field: str, text: str) -> InputError:
    return InputError(inventory.file, None, field, text)
