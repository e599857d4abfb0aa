"""Graphs with attributes, from GML or GraphML, with the attribute names of the Topology Zoo and of Shadow.

The Internet Topology Zoo (topology-zoo.org) gives nodes a Longitude and Latitude, and edges a LinkSpeedRaw in
bits per second, or a LinkSpeed with LinkSpeedUnits. Shadow (network_graph_spec in its documentation) gives
edges a latency, a jitter and a packet_loss, and nodes the bandwidth of a host. Case does not matter.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from topologies.errors import InputError
from topologies.imported.network import Edge, Network, Node, Place, nodes_by_id, shown
from topologies.quantities import LARGEST

Attributes = Mapping[str, str]
"""The attributes of a node or an edge, by their names in lower case."""

PLANNED = re.compile(r"\b(planned|proposed|future|under construction)\b", re.IGNORECASE)
REMARKS = ("linkstatus", "status", "linktype", "type", "linklabel", "label", "linknote", "note")
"""Attributes of an edge that may say that it is only planned."""
RATE_BITS_PER_S_MIN = 1000

_SI = {"": 0, "k": 3, "m": 6, "g": 9, "t": 12}
_PREFIXES = {
    **{name: Decimal(10) ** _SI[name[:1]] for name in ("", *"kmgt", "kilo", "mega", "giga", "tera")},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("kmgt", 1)},
    **{name: Decimal(1024) ** power for power, name in enumerate(("kibi", "mebi", "gibi", "tebi"), 1)},
}
_BITS = {f"{prefix}{unit}": size for prefix, size in _PREFIXES.items() for unit in ("bit", "bits")}
_MICROSECONDS = {
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), Decimal("0.001")),
    **dict.fromkeys(("us", "μs", "µs", "microsecond", "microseconds"), Decimal(1)),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), Decimal(1000)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Decimal(1_000_000)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), Decimal(60_000_000)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Decimal(3_600_000_000)),
}


@dataclass(frozen=True, slots=True)
class AttributeGraph:
    """A graph in the order of its file. Nodes have an `id`, edges a `source` and a `target`."""

    attributes: Attributes
    directed: bool
    nodes: tuple[Attributes, ...]
    edges: tuple[Attributes, ...]


def network_of(graph: AttributeGraph, file: str, name: str, origin: str) -> Network:
    """Return the network of a graph. Raises InputError with the node or edge."""
    nodes = [_node(each, _Reader(file, f"node {number}")) for number, each in enumerate(graph.nodes)]
    edges = [
        _edge(each, _Reader(file, f"edge {number}"), directed=graph.directed)
        for number, each in enumerate(graph.edges)
    ]
    unread = [
        shown(f"{given['linkspeed']} {given.get('linkspeedunits', '')}")
        for edge, given in zip(edges, graph.edges, strict=True)
        if given.get("linkspeed") and not edge.rate_bits_per_s
    ]
    return Network(
        file,
        graph.attributes.get("network") or graph.attributes.get("label") or name,
        origin,
        nodes_by_id(file, nodes),
        tuple(edges),
        left_out=(f"speeds of {len(unread)} links, such as {unread[0]}",) if unread else (),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Values of one node or edge. Raises InputError with its place."""

    file: str
    field: str

    def required(self, given: Attributes, name: str) -> str:
        if name not in given:
            raise self.error(f"has no {name}")
        return given[name]

    def number(self, given: Attributes, *names: str) -> float | None:
        for name in names:
            if text := given.get(name):
                try:
                    value = float(text)
                except ValueError:
                    value = math.nan
                if not math.isfinite(value):
                    raise self.error(f"{name} should be a number, not {shown(text)}")
                return value
        return None

    def quantity(
        self, given: Attributes, name: str, units: Mapping[str, Decimal], least: int = 0
    ) -> int | None:
        """Return a value of at least `least` base units with its unit, rounded to the base unit."""
        if name not in given:
            return None
        number, unit = _split(given[name])
        if unit.lower() not in units:
            example = "10 ms" if units is _MICROSECONDS else "1 Gbit"
            raise self.error(f"{name} should have a unit, such as {example}, not {shown(given[name])!r}")
        try:
            value = Decimal(number) * units[unit.lower()]
        except ArithmeticError:  # no number, or one that is too large for decimals
            value = Decimal("NaN")
        if not (value.is_finite() and least <= value <= LARGEST):
            raise self.error(f"{name} cannot be {shown(given[name])!r}")
        return int(value.to_integral_value())

    def error(self, problem: str) -> InputError:
        return InputError(self.file, None, self.field, problem)


def _split(text: str) -> tuple[str, str]:
    """Return number and unit of a text such as `10 ms`."""
    match = re.fullmatch(r"\s*([0-9.eE+-]*[0-9.])\s*(\D*?)\s*", text)
    return (match[1], match[2]) if match else ("", text)


def _node(given: Attributes, reader: _Reader) -> Node:
    longitude = reader.number(given, "longitude", "lon", "lng")
    latitude = reader.number(given, "latitude", "lat")
    place = None if longitude is None or latitude is None else Place(longitude, latitude)
    if place and not place.is_on_globe:
        raise reader.error(f"{longitude:g}, {latitude:g} are not a longitude and latitude")
    names = ("host_bandwidth_up", "host_bandwidth_down")
    given_rates = [reader.quantity(given, name, _BITS, RATE_BITS_PER_S_MIN) for name in names]
    rates = [rate for rate in given_rates if rate is not None]
    identifier = reader.required(given, "id")
    name = given.get("label") or given.get("name") or ""
    return Node(identifier, name, place, min(rates) if rates else None)


def _edge(given: Attributes, reader: _Reader, *, directed: bool) -> Edge:
    loss = reader.number(given, "packet_loss") or 0.0
    if not 0 <= loss <= 1:
        raise reader.error(f"packet_loss should be from 0 to 1, not {loss:g}")
    return Edge(
        reader.required(given, "source"),
        reader.required(given, "target"),
        delay_us=reader.quantity(given, "latency", _MICROSECONDS),
        jitter_us=reader.quantity(given, "jitter", _MICROSECONDS) or 0,
        loss=loss,
        rate_bits_per_s=_speed(given, reader),
        planned=any(PLANNED.search(given.get(name, "")) for name in REMARKS),
        directed=given["directed"].lower() in {"true", "1"} if "directed" in given else directed,
    )


def _speed(given: Attributes, reader: _Reader) -> int | None:
    """Return the speed of a link of the Zoo, in bits per second; None for a range such as 10-20."""
    raw = reader.number(given, "linkspeedraw")
    if raw is None:
        text, unit = given.get("linkspeed", ""), given.get("linkspeedunits", "").lower().removesuffix("bps")
        if unit not in _SI or not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
            return None
        raw = float(text) * 10 ** _SI[unit]
    return round(raw) if RATE_BITS_PER_S_MIN <= raw <= LARGEST else None
