"""The machines and links that an experiment on a topology requests from a site.

A region has one or several machines, or several regions in the topology's order share one. Either all
machines share one network and we shape on them (`shaping: hosts`), or every wide-area link between two
machines is a link of the site, which applies the topology's delay, loss and rate (`shaping: emulab`). Links
within a machine are always ours. Pure: data in, data out.

Emulab's FAQ ("What are the limits for link shaping?") gives the limits of its dedicated shaping nodes. Sites
differ and the FAQ is old, so a request beyond these limits is written nevertheless, with a warning. Every run
measures the links' real behaviour.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from testbed.links.abilities import NOT_ON_SITE, lacking
from testbed.machines.emulab.rspec_names import LAN, NAME_CHARACTERS_MAX, machine_names, region_lan
from testbed.machines.inventory import MACHINES_MAX, Shaping
from topologies.errors import InputError
from topologies.link_parameters import LinkParameters
from topologies.model import Topology
from topologies.quantities import DURATION, RATE

SHARED = IPv4Network("10.10.1.0/24")
FIRST_LINK = IPv4Network("10.128.0.0/24")  # the other links follow: LINKS_MAX of them fit below 11.0.0.0


@dataclass(frozen=True, slots=True)
class SitePort:
    """A machine's end of a link."""

    machine: str
    number: int  # 0, 1, … on this machine
    address: str
    netmask: str

    @property
    def name(self) -> str:
        """The port's name as sites write it: `r0:if0`."""
        return f"{self.machine}:if{self.number}"


@dataclass(frozen=True, slots=True)
class SiteLink:
    """A network between ports. `parameters` apply from port to port; empty if we shape the link."""

    name: str
    ports: tuple[SitePort, ...]
    parameters: tuple[tuple[SitePort, SitePort, LinkParameters], ...] = ()


@dataclass(frozen=True, slots=True)
class Hardware:
    """The kind of machine; None leaves it to the site. image: URN of a disk image."""

    type: str | None = None
    image: str | None = None


@dataclass(frozen=True, slots=True)
class Density:
    """The number of machines per region, or of regions per machine; one of the two is 1."""

    machines_per_region: int = 1
    regions_per_machine: int = 1


ONE_EACH = Density()


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """The machines and links to request from a site."""

    machines: tuple[str, ...]
    links: tuple[SiteLink, ...]

    def ports_of(self, machine: str) -> tuple[SitePort, ...]:
        """Return all ports of a machine."""
        return tuple(port for link in self.links for port in link.ports if port.machine == machine)


def site_request(topology: Topology, shaping: Shaping, density: Density = ONE_EACH) -> SiteRequest:
    """Return the request for a topology.

    Raises InputError if one machine is enough, too many are needed, or a link cannot be requested.
    """
    machines_of = _machines(topology, density)
    machines = tuple(dict.fromkeys(machine for served in machines_of.values() for machine in served))
    if len(machines) < 2:
        problem = "all fit one machine: `cutset run` on it needs no site's links"
        raise InputError(topology.name, None, "regions", problem)
    if len(machines) > MACHINES_MAX:
        problem = f"{len(machines)} machines are more than {MACHINES_MAX}: use --regions-per-machine"
        raise InputError(topology.name, None, "regions", problem)
    allocator = _NetworkAllocator()
    if shaping is Shaping.HOSTS:
        return SiteRequest(machines, tuple(allocator.links([_RequestedNetwork(LAN, machines)], SHARED)))
    networks = _requested_networks(topology, machines_of)
    request = SiteRequest(machines, tuple(allocator.links(networks, FIRST_LINK)))
    for machine in machines:
        if not request.ports_of(machine):
            raise InputError(topology.name, None, "links", f"none leads to {machine}: use --shaping hosts")
    return request


def _machines(topology: Topology, density: Density) -> dict[str, tuple[str, ...]]:
    """Return the machines of each region, the gateway's first."""
    regions = list(topology.regions)
    machines_of: dict[str, tuple[str, ...]] = {}
    for first in range(0, len(regions), density.regions_per_machine):
        served = tuple(regions[first : first + density.regions_per_machine])
        names = machine_names(served, density.machines_per_region)
        if len(names[-1]) > NAME_CHARACTERS_MAX:
            problem = (
                f"the machine name {names[-1]} would have more than {NAME_CHARACTERS_MAX} characters, which"
                " sites refuse: use fewer regions per machine, or shorter names"
            )
            raise InputError(topology.name, None, "regions", problem)
        machines_of |= dict.fromkeys(served, names)
    return machines_of


@dataclass(frozen=True, slots=True)
class _RequestedNetwork:
    """A network between machines; forward and backward are the parameters between the first two."""

    name: str
    machines: tuple[str, ...]
    forward: LinkParameters | None = None
    backward: LinkParameters | None = None


def _requested_networks(
    topology: Topology, machines_of: dict[str, tuple[str, ...]]
) -> Iterator[_RequestedNetwork]:
    """Yield a network for each wide-area link between two machines, and one per region with several."""
    for link in topology.links:
        a, b = (machines_of[end][0] for end in link.between)
        if a == b:
            continue
        for direction, parameters in (
            ("forward", link.forward_parameters),
            ("backward", link.backward_parameters),
        ):
            _refuse_special(topology.name, f"{link.name}.{direction}", parameters)
        yield _RequestedNetwork(link.name, (a, b), link.forward_parameters, link.backward_parameters)
    for region, machines in machines_of.items():
        if len(machines) > 1:
            yield _RequestedNetwork(region_lan(region), machines)


class _NetworkAllocator:
    """An allocator of addresses for networks, and of port numbers for machines."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def links(self, wanted: Iterable[_RequestedNetwork], first: IPv4Network) -> Iterator[SiteLink]:
        """Yield the links; `first` is the network of the first link, those of the others follow it."""
        for number, link in enumerate(wanted):
            base = int(first.network_address) + number * first.num_addresses
            ports = tuple(
                self._port(machine, str(IPv4Address(base + side)), str(first.netmask))
                for side, machine in enumerate(link.machines, 1)
            )
            yield SiteLink(link.name, ports, _parameters_of(link, ports))

    def _port(self, machine: str, address: str, netmask: str) -> SitePort:
        number = self._used.get(machine, 0)
        self._used[machine] = number + 1
        return SitePort(machine, number, address, netmask)


def _parameters_of(
    link: _RequestedNetwork, ports: tuple[SitePort, ...]
) -> tuple[tuple[SitePort, SitePort, LinkParameters], ...]:
    if link.forward is None or link.backward is None:
        return ()
    a, b = ports
    return ((a, b, link.forward), (b, a, link.backward))


def _refuse_special(topology: str, field: str, parameters: LinkParameters) -> None:
    for missing in lacking(parameters, NOT_ON_SITE):
        problem = f"has {missing}, which the site's links do not support: use --shaping hosts"
        raise InputError(topology, None, field, problem)


DELAY_US_MIN = 2_000
RATE_BITS_PER_S_MAX = 1_000_000_000


def limit_warnings(request: SiteRequest) -> Iterator[str]:
    """Yield a warning for each link that exceeds the limits of the FAQ."""
    for link in request.links:
        parameters_of = [parameters for _, _, parameters in link.parameters]
        for warning in dict.fromkeys(
            warning for parameters in parameters_of for warning in _warnings(parameters)
        ):
            yield f"{link.name}: {warning}"


def _warnings(parameters: LinkParameters) -> Iterator[str]:
    if 0 < parameters.delay_us < DELAY_US_MIN:
        asked, least = DURATION.format(parameters.delay_us), DURATION.format(DELAY_US_MIN)
        yield f"{asked} is less than the {least} that Emulab promises"
    if parameters.rate_bits_per_s is not None and parameters.rate_bits_per_s > RATE_BITS_PER_S_MAX:
        asked, most = RATE.format(parameters.rate_bits_per_s), RATE.format(RATE_BITS_PER_S_MAX)
        yield f"{asked} is more than the {most} that Emulab promises"
