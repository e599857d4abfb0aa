"""A topology file: regions (each a LAN) and the wide-area links between them, validated.

Delays are always one-way. Parameters default to those of `LinkParameters`; `forward` and `backward` override
single values of one direction. The testbed builds the network.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from topologies.jitter import NAMES, named_quantiles
from topologies.link_parameters import DEFAULT_MTU_BYTES, DELAY_US_MAX, LinkParameters
from topologies.region_names import LENGTH_MAX, PATTERN, WORDS
from topologies.routing import STATIC, Routing
from topologies.strict import (
    DurationUs,
    Flag,
    Fraction,
    Name,
    Packets,
    RateBitsPerS,
    SizeBytes,
    StrictModel,
    WholeNumber,
    problem,
    spelled,
    suggestion,
)
from topologies.trace_files import QUANTILES_ENDING, measured_quantiles

WEIGHT_MAX = 1_000_000
REGIONS_MAX = 250  # one /16 of 10.0.0.0/8 each
LINKS_MAX = 16_384  # one /30 of 10.255.0.0/16 each
RESERVED_REGION_NAMES = frozenset({"lan", "default", "true", "false", "null"})
"""`lan-r0-…` names LAN links, `roles: {default: …}` all regions, and YAML reads the others as booleans or
null.
"""


def _two_regions(given: Any) -> Any:
    if isinstance(given, tuple):
        given = list(given)
    if not (isinstance(given, list) and len(given) == 2 and all(isinstance(end, str) for end in given)):
        raise problem(f"should be two regions, such as [r0, r1], not {given!r:.40}")
    if given[0] == given[1]:
        raise problem(f"joins {given[0]} with itself")
    return tuple(given)


def _link_reference(given: Any) -> Any:
    if isinstance(given, str):
        return given
    if isinstance(given, (list, tuple)):
        return _two_regions(given)
    raise problem(f"should be two regions, such as [r0, r1], or a link's name, not {given!r:.40}")


def _distribution(given: Any) -> Any:
    if given in NAMES or (isinstance(given, str) and given.endswith(QUANTILES_ENDING)):
        return given
    raise problem(
        f"should be {', '.join(NAMES)} or a file that ends with {QUANTILES_ENDING}, not {given!r:.40}"
    )


JitterDistribution = Annotated[str, BeforeValidator(_distribution)]
LinkEnds = Annotated[tuple[str, str], BeforeValidator(_two_regions)]
LinkReference = Annotated[tuple[str, str] | str, BeforeValidator(_link_reference)]
"""A link by the two regions that it joins, if no other link does, or by its name."""
RegionName = Annotated[str, *spelled(PATTERN, WORDS, LENGTH_MAX)]
LinkName = Annotated[str, *spelled(PATTERN, WORDS, 2 * LENGTH_MAX + 4)]


class LinkOverrides(StrictModel):
    """New values for some parameters of a link direction; those not given stay."""

    delay_us: DurationUs | None = Field(None, le=DELAY_US_MAX)
    """One-way delay."""
    jitter_us: DurationUs | None = None
    """Largest deviation from the delay."""
    jitter_distribution: JitterDistribution | None = None
    """Distribution of the deviation: uniform (default), normal, pareto, or a CSV of measured quantiles."""
    jitter_correlation: Fraction | None = None
    """Correlation of consecutive packets' deviations from the delay."""
    loss: Fraction | None = None
    """Share of MTU-sized segments that are dropped."""
    loss_burst_packets: Packets | None = Field(None, ge=1)
    """Mean number of consecutive drops; by default drops are independent."""
    duplicate: Fraction | None = None
    """Share of MTU-sized segments that leave twice."""
    corrupt: Fraction | None = None
    """Share of MTU-sized segments with one flipped bit; the receiver's checksums discard them."""
    rate_bits_per_s: RateBitsPerS | None = Field(None, ge=1000)
    """Bits per second of MTU-sized segments with their headers; unlimited by default."""
    queue_packets: Packets | None = Field(None, ge=1)
    """MTU-sized segments that may wait for the rate; by default computed from rate and delay."""
    reorder: Flag | None = None
    """Whether jitter may change the order of packets."""

    def values(self) -> dict[str, Any]:
        """Return the given fields of `LinkParameters`."""
        fields = LinkParameters.__dataclass_fields__
        found = {name: value for name in fields if (value := getattr(self, name, None)) is not None}
        if self.jitter_distribution in NAMES:
            found["jitter_quantiles"] = named_quantiles(str(self.jitter_distribution))
        return found

    def applied_to(self, parameters: LinkParameters) -> LinkParameters:
        """Return the parameters with the given values in place of their own."""
        parameters = parameters.with_values(self.values())
        if self.jitter_distribution in {None, *NAMES}:
            return parameters
        jitter_us, quantiles = measured_quantiles(Path(str(self.jitter_distribution)), parameters.delay_us)
        return parameters.with_values({"jitter_us": jitter_us, "jitter_quantiles": quantiles})

    @model_validator(mode="after")
    def _jitter_stands_once(self) -> Self:
        if self.jitter_us is not None and self.jitter_distribution not in {None, *NAMES}:
            raise problem("follows from the file of jitter_distribution: leave it out", "jitter")
        return self


class TraceFiles(StrictModel):
    """Recordings that a link follows from time 0 of a run on; each repeats when it is over."""

    rate: str | None = Field(None, min_length=1, max_length=1000)
    """A file in the trace format of mahimahi, by its path from the topology's."""
    delay: str | None = Field(None, min_length=1, max_length=1000)
    """A CSV of `time_s,delay_ms`, by its path from the topology's."""

    @model_validator(mode="after")
    def _names_a_file(self) -> Self:
        if self.rate is None and self.delay is None:
            raise problem("names no file: give rate, delay or both")
        return self


class DirectionOverrides(LinkOverrides):
    """Values that differ in one direction of a link."""

    trace: TraceFiles | None = None
    """Recordings that this direction follows."""


class BaseLink(LinkOverrides):
    """The parameters of a link, the same in both directions."""

    mtu_bytes: SizeBytes = Field(1500, ge=576, le=9000)
    """Largest IP packet."""

    def parameters(self) -> LinkParameters:
        """Return the link's parameters as plain data."""
        return self.applied_to(LinkParameters())

    @model_validator(mode="after")
    def _possible(self) -> Self:
        refuse_impossible(self.parameters())
        return self


def refuse_impossible(parameters: LinkParameters, *side: str) -> None:
    """Raise a problem if the parameters contradict each other. side: the field path of the direction."""
    if parameters.impossible is not None:
        name, why = parameters.impossible
        raise problem(f"is {why}", *side, name)


class Lan(BaseLink):
    """A region's network: every host has a link of this kind, and two hosts are two such delays apart."""

    delay_us: DurationUs = Field(1_000, le=DELAY_US_MAX)
    """One-way delay between a host and its region's gateway."""
    rate_bits_per_s: RateBitsPerS | None = Field(1_000_000_000, ge=1000)
    """Rate of each host's link; null is unlimited."""

    @model_serializer(mode="wrap")
    def _unlimited(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Keep a null rate, also where nulls are left out: null means unlimited, not the default."""
        content: dict[str, Any] = serialize(self)
        return content | ({"rate": None} if self.rate_bits_per_s is None else {})


class Region(StrictModel):
    """A data centre: a LAN behind a gateway."""

    lan: Lan = Field(default_factory=lambda: Lan.model_validate({}))
    """The links between hosts and gateway."""


class Link(BaseLink):
    """A wide-area link between the gateways of two regions."""

    given_name: LinkName | None = Field(None, alias="name")
    """Its name; by default that of its regions, as r2-r3. Parallel links need names of their own."""
    between: LinkEnds
    """The two regions; forward is from the first to the second."""
    delay_us: DurationUs | None = Field(None, le=DELAY_US_MAX)
    """One-way delay; optional if `forward` and `backward` both give theirs."""
    icmp: Literal["sent", "dropped"] = "sent"
    """Whether senders of packets larger than the MTU get an ICMP message (RFC 1191); else these vanish."""
    weight: WholeNumber = Field(0, ge=0, le=WEIGHT_MAX)
    """Policy weight: routes minimise the sum of weights, then the delay."""
    forward: DirectionOverrides | None = None
    """Values that differ from the first region to the second."""
    backward: DirectionOverrides | None = None
    """Values that differ from the second region to the first."""
    trace: TraceFiles | None = None
    """Recordings that both directions follow; until time 0, and for routes, the link's own values apply."""

    @property
    def name(self) -> str:
        """The given name, or `r2-r3`, the ends in the order of the file."""
        return self.given_name or "-".join(self.between)

    @property
    def forward_parameters(self) -> LinkParameters:
        """The link's parameters from its first region to its second."""
        return self._parameters_of(self.forward)

    @property
    def backward_parameters(self) -> LinkParameters:
        """The link's parameters from its second region to its first."""
        return self._parameters_of(self.backward)

    @property
    def forward_files(self) -> Mapping[str, str]:
        """The trace files of the direction from first to second region, by `rate` and `delay`."""
        return self._files_of(self.forward)

    @property
    def backward_files(self) -> Mapping[str, str]:
        """The trace files of the direction from second to first region."""
        return self._files_of(self.backward)

    def _parameters_of(self, side: DirectionOverrides | None) -> LinkParameters:
        parameters = side.applied_to(self.parameters()) if side else self.parameters()
        files = self._files_of(side)
        return replace(
            parameters,
            rate_traced="rate" in files,
            delay_traced="delay" in files,
            icmp_dropped=self.icmp == "dropped",
        )

    def _files_of(self, side: DirectionOverrides | None) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for trace in (self.trace, side.trace if side else None):
            found |= trace.model_dump(exclude_none=True) if trace else {}
        return found

    @model_validator(mode="after")
    def _possible(self) -> Self:
        """Check that every direction has a delay and possible parameters."""
        if self.icmp == "dropped" and self.mtu_bytes >= DEFAULT_MTU_BYTES:
            raise problem(f"is without effect: give an mtu below {DEFAULT_MTU_BYTES}B", "icmp")
        if self.delay_us is None:
            given = [side for side in ("forward", "backward") if _delay_of(getattr(self, side)) is not None]
            if len(given) < 2:
                without = "forward" if given == ["backward"] else "backward"
                raise problem(f"is missing, and {without} has none" if given else "is missing", "delay")
            if self.jitter_distribution not in {None, *NAMES}:
                why = "is a file: give the link a delay, or each direction a file"
                raise problem(why, "jitter_distribution")
        if self.delay_us is not None:
            refuse_impossible(self.parameters())
        refuse_impossible(self.forward_parameters, "forward")
        refuse_impossible(self.backward_parameters, "backward")
        return self


def _delay_of(change: LinkOverrides | None) -> int | None:
    return change.delay_us if change else None


class Topology(StrictModel):
    """A wide-area network: regions and the links between them."""

    name: Name
    """Its name in lists and reports."""
    description: str = Field("", max_length=500)
    """One line for lists."""
    regions: dict[RegionName, Region] = Field(min_length=1, max_length=REGIONS_MAX)
    """The regions by name. Their order numbers their streams: the first owns stream 0."""
    links: tuple[Link, ...] = Field((), max_length=LINKS_MAX)
    """The wide-area links."""
    routing: Routing | None = None
    """How gateways find their routes: `static` (default), `ospf` or `bgp`, or a protocol with its timers."""

    def link(self, reference: str | Sequence[str]) -> Link | None:
        """Return the link of this name or the only one between two regions, in either order, or None."""
        found = self.links_at(reference)
        return found[0] if len(found) == 1 else None

    def links_at(self, reference: str | Sequence[str]) -> tuple[Link, ...]:
        """Return the link of this name, or all links between two regions."""
        if isinstance(reference, str):
            return tuple(link for link in self.links if link.name == reference)
        return tuple(link for link in self.links if set(link.between) == set(reference))

    def reference(self, link: Link) -> tuple[str, str] | str:
        """Return how a fault refers to a link: by its regions, or by name if others join them too."""
        return link.between if len(self.links_at(link.between)) == 1 else link.name

    def cut_set(self, groups: Sequence[Sequence[str]]) -> list[tuple[Link, bool]]:
        """Return the links to cut so that no group of regions reaches another directly.

        Each link comes with whether its forward direction leads from the earlier of its two groups to the
        later one. A region that is in no group keeps its links.
        """
        group_of = {region: number for number, group in enumerate(groups) for region in group}
        crossing = []
        for link in self.links:
            a, b = (group_of.get(end) for end in link.between)
            if a is not None and b is not None and a != b:
                crossing.append((link, a < b))
        return crossing

    def _other_link(self, first: int, link: Link) -> str:
        if link.given_name is not None:
            return f"also the name of links.{first}: give another"
        if set(self.links[first].between) == set(link.between):
            return f"a duplicate: see links.{first}; a parallel link needs a name"
        other = "it" if self.links[first].given_name else "a region"
        return f"also the name of links.{first}: rename {other}"

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        spelled_as: dict[str, str] = {}
        for name in self.regions:
            if name.lower() in RESERVED_REGION_NAMES or name.lower().startswith("lan-"):
                raise problem("is a reserved name", "regions", name)
            if (other := spelled_as.setdefault(name.lower(), name)) != name:
                raise problem(f"differs from {other} only in case", "regions", name)
        seen: dict[str, int] = {}
        for number, link in enumerate(self.links):
            for end in link.between:
                if end not in self.regions:
                    hint = suggestion(end, self.regions)
                    raise problem(f"there is no region {end}{hint}", "links", number, "between")
            named = link.given_name is not None
            field = "name" if named else "between"
            if named and (link.name.lower().startswith("lan-") or link.name.lower() in spelled_as):
                raise problem(f"{link.name} is a region's name, or begins with lan-", "links", number, field)
            for name in (link.name,) if named else (link.name, "-".join(reversed(link.between))):
                first = seen.setdefault(name.lower(), number)
                if first != number:
                    raise problem(f"{name} is {self._other_link(first, link)}", "links", number, field)
        return self

    @model_validator(mode="after")
    def _routing_fits(self) -> Self:
        if self.routing is not None and self.routing.protocol != STATIC:
            for number, link in enumerate(self.links):
                if link.weight:
                    raise problem("is for static routes: leave it out", "links", number, "weight")
                unfit = self.routing.unfit(link.forward_parameters, link.backward_parameters)
                if unfit is not None:
                    raise problem(unfit[1], "links", number, unfit[0])
        return self
