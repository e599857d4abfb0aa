"""Converts an imported network to a topology: delays from distances, and a line for each omission.

Light in a fibre needs 5 us per km (ITU-T G.826 and Y.1541 calculate with that). A fibre is longer than the
great circle between its ends by the path factor; G.826 assumes 1.5 for short routes.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from topologies.errors import InputError
from topologies.first_texts import listed
from topologies.imported.network import Edge, Network, Node, Place, shown
from topologies.model import LINKS_MAX, REGIONS_MAX, RESERVED_REGION_NAMES
from topologies.region_names import LENGTH_MAX, region_name

EARTH_RADIUS_KM = 6371.0
US_PER_KM = 5.0
PATH_FACTOR = 1.5
NAMES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Settings that the source lacks.

    path_factor: length of a link's path, as a multiple of the great circle between its ends.
    delay_us: one-way delay of links without a delay of their own and without a distance; None: left out.
    rate_bits_per_s: rate of links without one; None: unlimited.
    """

    path_factor: float = PATH_FACTOR
    delay_us: int | None = None
    rate_bits_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class ImportedLink:
    """A link. backward: None if it is as forward. name: None if its regions suffice."""

    ends: tuple[str, str]
    forward: Edge
    backward: Edge | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ImportedTopology:
    """Regions by name, in the order of the source; links; and what was left out, one line each."""

    network: Network
    regions: Mapping[str, Node]
    links: tuple[ImportedLink, ...]
    left_out: tuple[str, ...]


def imported(network: Network, assumptions: Assumptions) -> ImportedTopology:
    """Return the topology of a network: its largest part that is connected by links with delays.

    Raises InputError if there is none, or if it is too large.
    """
    usable = [edge for edge in network.edges if not edge.planned and edge.source != edge.target]
    timed = [edge for each in usable if (edge := _with_delay(network, each, assumptions)) is not None]
    if not timed:
        raise InputError(network.file, None, "", _without_delays(network) if usable else _WITHOUT_LINKS)
    pairs = _pairs(timed)
    parts = _parts(network.nodes, list(pairs))
    members = max(parts, key=len)
    if len(members) > REGIONS_MAX:
        problem = f"has {len(members)} connected nodes: a topology has at most {REGIONS_MAX} regions"
        raise InputError(network.file, None, "", problem)
    names = _names([network.nodes[each] for each in network.nodes if each in members])
    links = tuple(_links({(names[a], names[b]): edges for (a, b), edges in pairs.items() if a in members}))
    if len(links) > LINKS_MAX:
        problem = f"has {len(links)} links: a topology has at most {LINKS_MAX}"
        raise InputError(network.file, None, "", problem)
    left_out = [*network.left_out, *_left_out(network, timed, parts, members)]
    regions = {name: network.nodes[identifier] for identifier, name in names.items()}
    return ImportedTopology(network, regions, links, tuple(left_out))


def great_circle_km(a: Place, b: Place) -> float:
    """Return the distance on a sphere, by the haversine formula."""
    north, east = math.radians(b.latitude - a.latitude), math.radians(b.longitude - a.longitude)
    across = math.cos(math.radians(a.latitude)) * math.cos(math.radians(b.latitude))
    haversine = math.sin(north / 2) ** 2 + across * math.sin(east / 2) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(haversine)))


def _with_delay(network: Network, edge: Edge, assumptions: Assumptions) -> Edge | None:
    """Return the edge with its own delay, that of its distance, or the assumed one; None without any."""
    a, b = network.nodes[edge.source].place, network.nodes[edge.target].place
    delay_us = edge.delay_us
    if delay_us is None and a and b:
        delay_us = round(great_circle_km(a, b) * assumptions.path_factor * US_PER_KM)
    if delay_us is None:
        delay_us = assumptions.delay_us
    if delay_us is None:
        return None
    return replace(
        edge, delay_us=delay_us, rate_bits_per_s=edge.rate_bits_per_s or assumptions.rate_bits_per_s
    )


_WITHOUT_LINKS = "has no links, other than planned ones and self-loops"


def _without_delays(network: Network) -> str:
    why = (
        "its positions are the pixels of a drawing"
        if network.pixels
        else "it gives neither delays nor places"
    )
    return f"has no delays: {why}; give the delay of all links, such as --delay 10ms"


_Ends = tuple[str, str]
_Directions = tuple[Edge, Edge | None]  # backward: None if it is as forward


def _pairs(edges: Iterable[Edge]) -> dict[_Ends, list[_Directions]]:
    """Return the links of each pair of nodes.

    A directed edge and the first one against it without a counterpart are one link.
    """
    pairs: dict[_Ends, list[_Directions]] = {}
    for edge in edges:
        ends, against = (edge.source, edge.target), (edge.target, edge.source)
        links = pairs.get(against) or pairs.setdefault(ends, [])
        waiting = [
            number
            for number, (first, back) in enumerate(links)
            if back is None and first.directed and first.target == edge.source
        ]
        if edge.directed and waiting:
            links[waiting[0]] = (links[waiting[0]][0], edge)
        else:
            links.append((edge, None))
    return pairs


def _links(pairs: Mapping[_Ends, Sequence[_Directions]]) -> Iterator[ImportedLink]:
    """Yield the links by pair of regions; a link whose default name is taken is named A-B-2, and so on."""
    taken: set[str] = set()  # in lower case
    regions = {end.lower() for ends in pairs for end in ends}
    for (a, b), edges in pairs.items():
        for forward, backward in edges:
            name, number, default = None, 2, {f"{a}-{b}".lower(), f"{b}-{a}".lower()}
            while not (taken | regions if name else taken).isdisjoint({name.lower()} if name else default):
                name, number = f"{a}-{b}-{number}", number + 1
            taken |= {name.lower()} if name else default
            yield ImportedLink((a, b), forward, backward, name)


def _parts(nodes: Iterable[str], pairs: Iterable[_Ends]) -> list[list[str]]:
    """Return the connected parts of a graph, in the order of the nodes."""
    joined: dict[str, list[str]] = {node: [] for node in nodes}
    for a, b in pairs:
        joined[a].append(b)
        joined[b].append(a)
    parts: list[list[str]] = []
    seen: set[str] = set()
    for first in joined:
        if first in seen:
            continue
        seen.add(first)
        part = [first]
        for node in part:  # grows while it is read
            new = [each for each in dict.fromkeys(joined[node]) if each not in seen]
            seen.update(new)
            part += new
        parts.append(part)
    return parts


def _left_out(
    network: Network, timed: Sequence[Edge], parts: list[list[str]], main: list[str]
) -> Iterator[str]:
    """Yield a line for each kind of node and link that does not become part of the topology."""
    nodes = network.nodes
    planned = [edge for edge in network.edges if edge.planned]
    if planned:
        names = [f"{_called(nodes[each.source])} - {_called(nodes[each.target])}" for each in planned]
        yield f"{_counted(len(planned), 'link')} only planned: {listed(names, NAMES_SHOWN)}"
    if loops := sum(1 for edge in network.edges if edge.source == edge.target):
        yield f"{_counted(loops, 'self-loop')}"
    linked = {end for edge in timed for end in (edge.source, edge.target)}
    unplaced = [node for node in nodes.values() if node.place is None and node.id not in linked]
    if unplaced:
        names = [*map(_called, unplaced)]
        yield f"{_counted(len(unplaced), 'node')} without a place: {listed(names, NAMES_SHOWN)}"
    without_place = {node.id for node in unplaced}
    islands = [part for part in parts if part is not main and part[0] not in without_place]
    if islands:
        names = [" + ".join(_called(nodes[each]) for each in part[:NAMES_SHOWN]) for part in islands]
        yield f"{_counted(len(islands), 'island')}: {listed(names, NAMES_SHOWN)}"


def _called(node: Node) -> str:
    return shown(node.name or node.id)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _names(nodes: Sequence[Node]) -> dict[str, str]:
    """Return the name of each node's region, by id: unique, from its name or else its id."""
    taken = set(RESERVED_REGION_NAMES)  # in lower case
    names: dict[str, str] = {}
    for node in nodes:
        wanted = region_name(node.name) or region_name(node.id) or "region"
        name, number = wanted, 1
        while name.lower() in taken:
            number += 1
            name = f"{wanted[: LENGTH_MAX - len(str(number)) - 1].rstrip('-')}-{number}"
        taken.add(name.lower())
        names[node.id] = name
    return names
