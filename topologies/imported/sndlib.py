"""SNDlib's XML (S. Orlowski et al., "SNDlib 1.0", Networks 55, 2010; sndlib.zib.de).

Coordinates are geographical or pixels, as the file says. Capacities have the unit that `meta` gives; many
files give none, and then links have no rate.
"""

from xml.etree.ElementTree import Element

from topologies.errors import InputError
from topologies.imported.graphml import children
from topologies.imported.network import Edge, Network, Node, Place, nodes_by_id, shown
from topologies.quantities import LARGEST

UNITS_BITS_PER_S = {"KBITPERSEC": 10**3, "MBITPERSEC": 10**6, "GBITPERSEC": 10**9}


def read_sndlib(root: Element, file: str, name: str, origin: str) -> Network:
    """Return the network of a file. Raises InputError."""
    structure = _below(root, "networkStructure")
    nodes = _below(structure, "nodes")
    if nodes is None:
        raise InputError(file, None, "", "has no nodes: SNDlib's have networkStructure, nodes and links")
    pixels = nodes.get("coordinatesType") == "pixel"
    found = [_node(each, file, pixels=pixels) for each in children(nodes, "node")]
    links = _below(structure, "links")
    given_unit = _text(_below(root, "meta"), "unit")
    unit = UNITS_BITS_PER_S.get(given_unit.upper())
    edges, without_unit = [], 0
    for link in () if links is None else children(links, "link"):
        capacity = _capacity(link)
        without_unit += bool(capacity and not unit)
        rate = round(capacity * (unit or 0)) or None
        edges.append(Edge(_text(link, "source"), _text(link, "target"), rate_bits_per_s=rate))
    reason = f"the unit {shown(given_unit)} is unknown" if given_unit else "the file gives no unit"
    left_out = (f"capacities of {without_unit} links: {reason}",) if without_unit else ()
    by_id = nodes_by_id(file, found)
    return Network(file, name, origin, by_id, tuple(edges), pixels=pixels, left_out=left_out)


def _below(element: Element | None, name: str) -> Element | None:
    return None if element is None else next(children(element, name), None)


def _text(element: Element | None, name: str) -> str:
    found = _below(element, name)
    return "" if found is None else (found.text or "").strip()


def _node(node: Element, file: str, *, pixels: bool) -> Node:
    name = node.get("id", "")
    coordinates = _below(node, "coordinates")
    if pixels or coordinates is None:
        return Node(name, name)
    try:
        place = Place(float(_text(coordinates, "x")), float(_text(coordinates, "y")))
    except ValueError:
        place = None
    if place is None or not place.is_on_globe:
        raise InputError(
            file, None, f"node {shown(name)}", "its coordinates are not a longitude and latitude"
        )
    return Node(name, name, place)


def _capacity(link: Element) -> float:
    """Return the capacity that is installed; 0 if there is none, as for links that a planner may add."""
    try:
        capacity = float(_text(_below(link, "preInstalledModule"), "capacity"))
    except ValueError:
        return 0.0
    return capacity if 0 < capacity <= LARGEST / max(UNITS_BITS_PER_S.values()) else 0.0
