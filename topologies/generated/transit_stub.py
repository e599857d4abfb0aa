"""Transit-stub networks, after GT-ITM (Zegura, Calvert, Bhattacharjee: How to Model an Internetwork, 1996).

Transit domains are joined with each other; each of their routers has stub domains, each joined to it by one
link. Domains are random connected graphs. Delays are proportional to distances: transit domains lie on a
square, and the routers of each domain on a square of the same size around its middle.

The Scribe paper (2002, IV.A) has 10 x 5 transit routers and 10 stub domains of 10 routers on each: 5,050. Its
"average delay of core links", 40.7 ms, is interpreted as that of all links between routers in any domain,
since LAN links are the only others that it names; delays are scaled to this mean. 98 of 100 links are within
stubs or lead to them. If stubs were small compared with transit domains, so that 40.7 ms were a short link, a
route would take 1.3 s on average; with equal sizes it takes 0.4 s, and trees have the paper's delays and link
stress.

With `varied`, domains differ in size as GT-ITM draws them: all have the average size at first, then one
router at a time moves to another domain, three times the number of domains (its constant RANDMULT). Stub
domains move between the routers of a transit domain in the same way. The total number of routers stays.

Not modelled: several links out of a stub; routers as hosts.
"""

import itertools
from collections.abc import Sequence
from math import dist
from random import Random
from typing import Literal, Self

from pydantic import Field, model_validator

from topologies.generated.generated_model import Generated
from topologies.generated.router_network import RouterLink, RouterNetwork, routed
from topologies.link_parameters import DELAY_US_MAX
from topologies.model import REGIONS_MAX, Topology
from topologies.routes import connected
from topologies.strict import DurationUs, Flag, Fraction, WholeNumber, problem

ROUTERS_MAX = 200_000
MOVES = 3
"""Routers that move, for each domain (GT-ITM's RANDMULT)."""
DRAWS_MAX = 1_000
INTER_DOMAIN_WEIGHT = 100
"""The weight of a link between transit domains. Others have 1, so routes leave a domain only if necessary."""

Place = tuple[float, float]


class TransitStub(Generated):
    """Transit domains with stub domains on them."""

    kind: Literal["transit-stub"]
    """Transit domains, each of whose routers has stub domains (GT-ITM's model)."""
    transit_domains: WholeNumber = Field(10, ge=1, le=1_000)
    """The number of transit domains."""
    transit_routers: WholeNumber = Field(5, ge=1, le=1_000)
    """Routers of each transit domain."""
    stub_domains: WholeNumber = Field(10, ge=0, le=1_000)
    """Stub domains on each transit router."""
    stub_routers: WholeNumber = Field(10, ge=1, le=1_000)
    """Routers of each stub domain."""
    link_delay_us: DurationUs = Field(40_700, ge=100, le=DELAY_US_MAX)
    """One-way delay of the links between routers, on average."""
    density: Fraction = 0.4
    """Probability that two routers of a domain are joined; each domain is connected regardless."""
    varied: Flag = False
    """Whether domains differ in size; the numbers of routers and of stub domains are then averages."""

    @property
    def router_count(self) -> int:
        """The number of routers."""
        transit = self.transit_domains * self.transit_routers
        return transit * (1 + self.stub_domains * self.stub_routers)

    def network(self) -> RouterNetwork:
        """Draw the routers and links, and compute the routes."""
        return _NetworkDraw(self).network()

    def generate(self) -> Topology:
        """See `Generated.generate`: every router is a region."""
        if self.router_count > REGIONS_MAX:
            text = f"makes {self.router_count} routers: on links at most {REGIONS_MAX} regions are possible"
            raise problem(text, "stub_routers")
        network = self.network()
        return self.topology_of(
            network.names,
            (
                {
                    "between": [network.names[link.a], network.names[link.b]],
                    "delay": f"{link.delay_us}us",
                    "weight": link.weight,
                }
                for link in network.links
            ),
        )

    @model_validator(mode="after")
    def _not_too_large(self) -> Self:
        if self.router_count > ROUTERS_MAX:
            text = f"makes {self.router_count} routers: at most {ROUTERS_MAX} are possible"
            raise problem(text, "stub_routers")
        return self


class _NetworkDraw:
    """A network while it is drawn."""

    def __init__(self, asked: TransitStub) -> None:
        self._asked = asked
        self._rng = asked.drawing("transit-stub")
        self._names: list[str] = []
        self._places: list[Place] = []
        self._gateways: list[int] = []
        self._stubs: list[int] = []
        self._edges: list[tuple[int, int, int]] = []

    def network(self) -> RouterNetwork:
        """Draw the whole network."""
        domains = self._transit_domains()
        stub = 0
        for domain in domains:
            for gateway, stubs in zip(
                domain, self._sizes(len(domain), self._asked.stub_domains), strict=True
            ):
                self._stub_domains(gateway, stub, stubs)
                stub += stubs
        lengths = [dist(self._places[a], self._places[b]) for a, b, _ in self._edges]
        scale = self._asked.link_delay_us * len(lengths) / sum(lengths) if lengths else 0
        links = [
            RouterLink(a, b, max(1, round(length * scale)), weight)
            for (a, b, weight), length in zip(self._edges, lengths, strict=True)
        ]
        return routed(self._names, links, self._gateways, self._stubs)

    def _sizes(self, count: int, average: int) -> list[int]:
        """Return the sizes of this number of domains; see the module's docstring."""
        sizes, rng = [average] * count, self._rng
        for _ in range(MOVES * count if self._asked.varied else 0):
            smaller = rng.randrange(count)
            if sizes[smaller] > 1:
                sizes[smaller] -= 1
                sizes[rng.randrange(count)] += 1
        return sizes

    def _transit_domains(self) -> list[list[int]]:
        asked, rng = self._asked, self._rng
        sizes = self._sizes(asked.transit_domains, asked.transit_routers)
        centres = [(rng.random(), rng.random()) for _ in sizes]
        domains = []
        for number, (centre, size) in enumerate(zip(centres, sizes, strict=True)):
            names = [f"t{number}x{router}" for router in range(size)]
            domains.append(self._domain(names, centre))
        for a, b in _graph(len(domains), asked.density, rng):
            ends = rng.choice(domains[a]), rng.choice(domains[b])
            self._edges.append((*ends, INTER_DOMAIN_WEIGHT))
        return domains

    def _stub_domains(self, gateway: int, first: int, count: int) -> None:
        for stub, size in enumerate(self._sizes(count, self._asked.stub_routers), first):
            names = [f"s{stub}x{router}" for router in range(size)]
            routers = self._domain(names, self._places[gateway], gateway, stub)
            self._edges.append((gateway, self._rng.choice(routers), 1))

    def _domain(
        self, names: Sequence[str], centre: Place, gateway: int | None = None, stub: int = -1
    ) -> list[int]:
        first = len(self._names)
        routers = list(range(first, first + len(names)))
        self._names += names
        for router in routers:
            x, y = (middle + self._rng.random() - 0.5 for middle in centre)
            self._places.append((x, y))
            self._gateways.append(router if gateway is None else gateway)
            self._stubs.append(stub)
        joined = _graph(len(names), self._asked.density, self._rng)
        self._edges += ((first + a, first + b, 1) for a, b in joined)
        return routers


def _graph(count: int, density: float, rng: Random) -> list[tuple[int, int]]:
    """Draw a connected random graph: joins pairs by `density` until it is connected, else adds a path."""
    pairs = list(itertools.combinations(range(count), 2))
    for _ in range(DRAWS_MAX):
        edges = [pair for pair in pairs if rng.random() < density]
        if connected(range(count), edges):
            return edges
    return sorted({*edges, *itertools.pairwise(range(count))}) if count > 1 else []
