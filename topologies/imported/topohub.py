"""TopoHub (P. Jurkiewicz, SoftwareX 24, 2023): graphs as JSON in networkx's node-link form.

Networks come by name from the package `topohub`, which is optional, or from a file. A `pos` is longitude and
latitude, but for some networks of SNDlib the pixels of a drawing, and the JSON does not say so. Positions
beyond 180 or 90 degrees are pixels; so are those of a network that are all whole numbers (`india35`). Lengths
of links (`dist`) are computed from the positions, so they are not read.
"""

import json
import re
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from topologies.document import Document, validated
from topologies.errors import InputError
from topologies.imported.network import Edge, Network, Node, Place, nodes_by_id
from topologies.strict import suggestion

PACKAGE = "topohub"
PREFIX = f"{PACKAGE}:"
KEY = re.compile(r"[a-z]+(/[A-Za-z0-9][\w.-]*)+", re.ASCII)


class _Node(BaseModel):
    id: int | str
    name: str | int = ""
    pos: tuple[float, float] | None = None


class _Edge(BaseModel):
    source: int | str
    target: int | str


class _Graph(BaseModel):
    """The form of `networkx.node_link_data`; before networkx 3.4 edges were called links."""

    directed: bool = False
    graph: dict[str, Any] = {}
    nodes: list[_Node]
    edges: list[_Edge] = Field(validation_alias=AliasChoices("edges", "links"))


def packaged(source: str) -> tuple[bytes, str]:
    """Return the JSON of `topohub:topozoo/Geant2012`, and the network's name with its version.

    Raises InputError.
    """
    key = source.removeprefix(PREFIX)
    try:
        version = metadata.version(PACKAGE)
        data = resources.files(PACKAGE) / "data"
    except (metadata.PackageNotFoundError, ModuleNotFoundError):
        problem = (
            "the package topohub is not installed in Cutset's environment (.venv): install it, or give a file"
        )
        raise InputError(source, None, "", problem) from None
    file = data / f"{key}.json"
    if not KEY.fullmatch(key) or not file.is_file():
        raise InputError(source, None, "", f"TopoHub {version} has no such network{_near(key, data)}")
    return file.read_bytes(), f"{key} of TopoHub {version}"


def _near(key: str, data: Traversable) -> str:
    """Return a hint: the nearest name of the folder, or the folders."""
    folder, _, _ = key.rpartition("/")
    if KEY.fullmatch(f"{folder}/x") and (data / folder).is_dir():
        names = [file.name for file in (data / folder).iterdir()]
        keys = sorted(f"{folder}/{name.removesuffix('.json')}" for name in names)
        hint = suggestion(key, keys)
        return hint if "did you mean" in hint else f": {folder} has {keys[0]} and {len(keys) - 1} others"
    return suggestion(key, sorted(each.name for each in data.iterdir() if each.is_dir()))


def read_topohub(content: bytes, file: str, name: str, origin: str) -> Network:
    """Parse the JSON of a network. Raises InputError."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(file, None, "", f"not valid JSON: {error}") from None
    graph = validated(_Graph, Document(file, data, {}))
    places = {each.id: Place(*each.pos) for each in graph.nodes if each.pos is not None}
    pixels = _are_pixels(list(places.values()))
    nodes = [
        Node(str(each.id), str(each.name), None if pixels else places.get(each.id)) for each in graph.nodes
    ]
    edges = tuple(Edge(str(each.source), str(each.target), directed=graph.directed) for each in graph.edges)
    given = graph.graph.get("name")
    name = given if isinstance(given, str) and given else name
    return Network(file, name, origin, nodes_by_id(file, nodes), edges, pixels)


def _are_pixels(places: list[Place]) -> bool:
    """Return whether positions are those of a drawing."""
    numbers = [number for each in places for number in (each.longitude, each.latitude)]
    return bool(numbers) and (
        not all(each.is_on_globe for each in places) or all(number.is_integer() for number in numbers)
    )
