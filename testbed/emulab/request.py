"""Which machines and links an experiment on a topology asks a site for.

One machine for each region, or for every few in the topology's order. Either all machines share one network
and we shape on them (`shaping: hosts`), or every wide-area link between two machines is a link of the site's,
which delays, loses and paces as the topology says (`shaping: emulab`). Links within a machine stay ours.
Pure: data in, data out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from testbed.emulab.vocabulary import LAN, NAME_CHARACTERS_MAX, machine_name
from testbed.hosts.inventory import MACHINES_MAX, Shaping
from topologies.errors import InputError
from topologies.model import Link, Topology
from topologies.shape import Shape

SHARED = IPv4Network("10.10.1.0/24")
LINKS = IPv4Network("10.128.0.0/9")  # a network of its own for each link
LINK_PREFIX = 24
NOT_ON_SITE = {
    "jitter_us": "jitter",
    "queue_packets": "a queue limit",
    "reorder": "reordering",
}  # what links of the site cannot do


@dataclass(frozen=True, slots=True)
class Port:
    """A machine's end of a link."""

    machine: str
    number: int  # 0, 1, … on this machine
    address: str
    netmask: str

    @property
    def name(self) -> str:
        """`r0:if0`, as the sites write it."""
        return f"{self.machine}:if{self.number}"


@dataclass(frozen=True, slots=True)
class SiteLink:
    """A network between ports. `shapes` are what it does from port to port, none if we shape ourselves."""

    name: str
    ports: tuple[Port, ...]
    shapes: tuple[tuple[Port, Port, Shape], ...] = ()


@dataclass(frozen=True, slots=True)
class Hardware:
    """What kind of machine; None leaves it to the site. image: URN of a disk image."""

    type: str | None = None
    image: str | None = None


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """What to ask for: the machines' names and the links."""

    machines: tuple[str, ...]
    links: tuple[SiteLink, ...]

    def ports_of(self, machine: str) -> tuple[Port, ...]:
        """All ports of a machine."""
        return tuple(port for link in self.links for port in link.ports if port.machine == machine)


def site_request(topology: Topology, *, shaping: Shaping, regions_per_machine: int = 1) -> SiteRequest:
    """What a topology needs. Raises InputError: one machine is enough, too many, or a link is too special."""
    machine_of = _machines(topology, regions_per_machine)
    machines = tuple(dict.fromkeys(machine_of.values()))
    if len(machines) < 2:
        raise InputError(
            topology.name, None, "regions", "all fit one machine: `cutset run` on it needs no site's links"
        )
    if len(machines) > MACHINES_MAX:
        raise InputError(
            topology.name,
            None,
            "regions",
            f"{len(machines)} machines are more than {MACHINES_MAX}: give a machine more regions with"
            " --regions-per-machine",
        )
    if shaping is Shaping.HOSTS:
        return SiteRequest(machines, (_shared(machines),))
    crossing = [link for link in topology.links if len({machine_of[end] for end in link.between}) == 2]
    request = SiteRequest(machines, tuple(_own_links(topology.name, crossing, machine_of)))
    for machine in machines:
        if not request.ports_of(machine):
            raise InputError(topology.name, None, "links", f"none leads to {machine}: take --shaping hosts")
    return request


def _machines(topology: Topology, regions_per_machine: int) -> dict[str, str]:
    """The machine of each region."""
    regions = list(topology.regions)
    machine_of = {}
    for first in range(0, len(regions), regions_per_machine):
        served = tuple(regions[first : first + regions_per_machine])
        name = machine_name(served)
        if len(name) > NAME_CHARACTERS_MAX:
            raise InputError(
                topology.name,
                None,
                "regions",
                f"a machine named {name} would have more than {NAME_CHARACTERS_MAX} characters, which sites"
                " refuse: fewer regions to a machine, or shorter names",
            )
        machine_of |= dict.fromkeys(served, name)
    return machine_of


def _shared(machines: tuple[str, ...]) -> SiteLink:
    ports = (
        Port(machine, 0, str(SHARED[number]), str(SHARED.netmask))
        for number, machine in enumerate(machines, 1)
    )
    return SiteLink(LAN, tuple(ports))


def _own_links(topology: str, links: list[Link], machine_of: dict[str, str]) -> Iterator[SiteLink]:
    used = dict.fromkeys(machine_of.values(), 0)
    for number, link in enumerate(links):
        for direction, shape in (("forward", link.forward_shape), ("backward", link.backward_shape)):
            _refuse_special(topology, f"{link.name}.{direction}", shape)
        a, b = (_next_port(machine_of[end], used, number, side) for side, end in enumerate(link.between, 1))
        shapes = ((a, b, link.forward_shape), (b, a, link.backward_shape))
        yield SiteLink(link.name, (a, b), shapes)


def _next_port(machine: str, used: dict[str, int], link: int, side: int) -> Port:
    base = int(LINKS.network_address) + (link << (32 - LINK_PREFIX))
    mask = IPv4Network((base, LINK_PREFIX)).netmask
    port = Port(machine, used[machine], str(IPv4Address(base + side)), str(mask))
    used[machine] += 1
    return port


def _refuse_special(topology: str, field: str, shape: Shape) -> None:
    plain = Shape()
    for name, said in NOT_ON_SITE.items():
        if getattr(shape, name) != getattr(plain, name):
            raise InputError(
                topology, None, field, f"has {said}, which the site's links cannot do: take --shaping hosts"
            )
