"""The base of generated topologies: a name, a seed, and links whose delays are drawn or listed.

A kind is a model that gives the joined regions (`edges`); this module draws the delays, link by link. Pure:
the same file gives the same topology. A kind that needs more than one range of delays is a `Generated` with
its own `generate`.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, ValidationError, model_validator

from topologies.link_parameters import DELAY_US_MAX
from topologies.model import LINKS_MAX, REGIONS_MAX, Lan, LinkOverrides, Topology
from topologies.routing import Routing
from topologies.strict import DurationUs, Flag, Name, SizeBytes, StrictModel, WholeNumber, problem

Edge = tuple[int, int]  # two regions, by number; forward is from the first to the second

STEP_US = 100  # drawn delays are multiples of it

RegionCount = Annotated[WholeNumber, Field(le=REGIONS_MAX)]


class DelayRange(StrictModel):
    """Delays drawn uniformly from a range, by the seed."""

    from_us: DurationUs = Field(ge=STEP_US, le=DELAY_US_MAX)
    """The smallest one-way delay."""
    to_us: DurationUs = Field(ge=STEP_US, le=DELAY_US_MAX)
    """The largest one-way delay."""
    asymmetric: Flag = False
    """Whether each direction of a link draws its own delay."""

    def draw_us(self, rng: random.Random) -> int:
        """Draw one delay."""
        return rng.randint(-(-self.from_us // STEP_US), self.to_us // STEP_US) * STEP_US

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.from_us > self.to_us:
            raise problem("is more than `to`", "from")
        return self


def _range_or_list(given: Any) -> Any:
    if isinstance(given, (dict, list, tuple, DelayRange)):
        return given
    raise problem(f"should be a range, such as {{from: 1ms, to: 150ms}}, or a list, not {given!r:.40}")


def _tag(given: Any) -> str:
    return "<list>" if isinstance(given, (list, tuple)) else "<range>"


Delays = Annotated[
    Annotated[DelayRange, Tag("<range>")]
    | Annotated[
        tuple[Annotated[DurationUs, Field(le=DELAY_US_MAX)], ...], Field(max_length=LINKS_MAX), Tag("<list>")
    ],
    Discriminator(_tag),
    BeforeValidator(_range_or_list),
]


class Generated(StrictModel, ABC):
    """A topology given by its kind."""

    name: Name
    """Its name in lists and reports."""
    description: str = Field("", max_length=500)
    """One line for lists."""
    seed: WholeNumber = Field(1, ge=0)
    """The seed of all random draws."""
    lan: Lan = Field(default_factory=lambda: Lan.model_validate({}))
    """The LAN of every region."""

    @abstractmethod
    def generate(self) -> Topology:
        """Return its regions and links. Raises a problem if there is no such topology."""

    def drawing(self, what: str) -> random.Random:
        """Return a separate random generator for one purpose, so that draws do not affect each other."""
        return random.Random(f"topology {what} {self.seed}")  # noqa: S311  reproducible, not secret

    def topology_of(
        self, regions: Sequence[str], links: Iterable[dict[str, Any]], routing: Routing | None = None
    ) -> Topology:
        """Return the topology of these regions and links, the latter as in a file."""
        lan = self.lan.model_dump(mode="json", by_alias=True)
        content = {
            "name": self.name,
            "description": self.description,
            "regions": {region: {"lan": lan} for region in regions},
            "links": list(links),
            "routing": routing and routing.model_dump(mode="json", by_alias=True, exclude_none=True),
        }
        try:
            return Topology.model_validate(content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise problem(f"makes an invalid link: {first['msg']}") from None


class GeneratedGraph(Generated):
    """A topology whose links differ only in their delays."""

    delays: Delays
    """One-way delays of the links: a range to draw from, or a list with one for each link."""
    link: LinkOverrides = Field(default_factory=lambda: LinkOverrides.model_validate({}))
    """Parameters of the links other than their delay."""
    mtu_bytes: SizeBytes = Field(1500, ge=576, le=9000)
    """Largest IP packet of the links."""
    routing: Routing | None = None
    """How gateways find their routes, as in other topologies."""

    @property
    @abstractmethod
    def region_count(self) -> int:
        """The number of regions."""

    @abstractmethod
    def edges(self) -> Iterator[Edge]:
        """Yield the pairs of joined regions, each once."""

    def generate(self) -> Topology:
        """See `Generated.generate`. Regions are named r0, r1 and so on."""
        regions = [f"r{number}" for number in range(self.region_count)]
        edges = list(self.edges())
        values = self.link.model_dump(mode="json", by_alias=True, exclude_none=True)
        links = (
            {"between": [regions[a], regions[b]], "mtu": f"{self.mtu_bytes}B", **values, **delays}
            for (a, b), delays in zip(edges, self._delays(len(edges)), strict=True)
        )
        return self.topology_of(regions, links, self.routing)

    @model_validator(mode="after")
    def _delays_stand_once(self) -> Self:
        if self.link.delay_us is not None:
            raise problem("use `delays` for delays", "link", "delay")
        return self

    def _delays(self, count: int) -> Iterator[dict[str, Any]]:
        """Yield the fields of each link that give its delays."""
        if not isinstance(self.delays, DelayRange):
            if len(self.delays) != count:
                raise problem(f"there are {count} links, not {len(self.delays)}", "delays")
            yield from ({"delay": _text(delay_us)} for delay_us in self.delays)
            return
        rng = self.drawing("delays")
        for _ in range(count):
            first_us = self.delays.draw_us(rng)
            if self.delays.asymmetric:
                second_us = self.delays.draw_us(rng)
                yield {"forward": {"delay": _text(first_us)}, "backward": {"delay": _text(second_us)}}
            else:
                yield {"delay": _text(first_us)}


class CountedGraph(GeneratedGraph):
    """A graph with a given number of regions."""

    regions: RegionCount
    """The number of regions."""

    @property
    def region_count(self) -> int:
        """The number of regions."""
        return self.regions


def _text(us: int) -> str:
    return f"{us}us"
