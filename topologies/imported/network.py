"""A network as its source describes it, before it becomes a topology."""

from collections.abc import Mapping
from dataclasses import dataclass

from topologies.errors import InputError

LONGITUDE_MAX = 180
LATITUDE_MAX = 90


@dataclass(frozen=True, slots=True)
class Place:
    """A place on the globe, in degrees."""

    longitude: float
    latitude: float

    @property
    def is_on_globe(self) -> bool:
        """Whether these are a longitude and a latitude; pixels and NaN are not."""
        return abs(self.longitude) <= LONGITUDE_MAX and abs(self.latitude) <= LATITUDE_MAX


@dataclass(frozen=True, slots=True)
class Node:
    """A node. name: as people read it, or "". rate_bits_per_s: of its hosts' access links, if known."""

    id: str
    name: str
    place: Place | None = None
    rate_bits_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A link between two nodes, by their ids. None: the source does not say."""

    source: str
    target: str
    delay_us: int | None = None
    jitter_us: int = 0
    loss: float = 0.0
    rate_bits_per_s: int | None = None
    planned: bool = False
    directed: bool = False  # whether it is one direction of a link


@dataclass(frozen=True, slots=True)
class Network:
    """A network, whose edges join nodes that it has.

    file: the source as the user named it. origin: what it is, with its version.
    pixels: whether positions are those of a drawing; then no node has a place.
    left_out: what the reader left out, one line each.
    """

    file: str
    name: str
    origin: str
    nodes: Mapping[str, Node]
    edges: tuple[Edge, ...]
    pixels: bool = False
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the ends of edges. Raises InputError."""
        for number, edge in enumerate(self.edges):
            for end in (edge.source, edge.target):
                if end not in self.nodes:
                    raise InputError(self.file, None, f"edge {number}", f"there is no node {shown(end)}")


def nodes_by_id(file: str, nodes: list[Node]) -> dict[str, Node]:
    """Return the nodes by id, in their order. Raises InputError if two have the same."""
    found: dict[str, Node] = {}
    for node in nodes:
        if node.id in found:
            raise InputError(
                file, None, f"node {shown(node.id)}", "is there twice: each needs an id of its own"
            )
        found[node.id] = node
    return found


SHOWN_CHARACTERS = 60


def shown(text: str) -> str:
    """Return a name of a source for messages and comments: one line of printable characters."""
    plain = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return plain if len(plain) <= SHOWN_CHARACTERS else plain[:SHOWN_CHARACTERS] + "…"
