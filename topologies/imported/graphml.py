"""GraphML (graphml.graphdrawing.org): nodes and edges with data, whose keys the head of the file declares."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from topologies.errors import InputError
from topologies.imported.attributes import AttributeGraph, Attributes


def read_graphml(root: Element, file: str) -> AttributeGraph:
    """Return the first graph of a file. Raises InputError. Nested graphs are not read."""
    keys = {key.get("id", ""): key.get("attr.name", "").lower() for key in children(root, "key")}
    graph = next(children(root, "graph"), None)
    if graph is None:
        raise InputError(file, None, "", "has no graph")
    return AttributeGraph(
        _data(graph, keys),
        graph.get("edgedefault") == "directed",
        tuple({**_data(node, keys), **_given(node, "id")} for node in children(graph, "node")),
        tuple({**_data(edge, keys), **_given(edge, "source", "target")} for edge in children(graph, "edge")),
    )


def children(element: Element, name: str) -> Iterator[Element]:
    """Yield the children of this name, in any namespace."""
    return (child for child in element if child.tag.rpartition("}")[2] == name)


def _data(element: Element, keys: Attributes) -> Attributes:
    data = ((keys.get(each.get("key", ""), ""), each.text) for each in children(element, "data"))
    return {name: text.strip() for name, text in data if name and text}


def _given(element: Element, *names: str) -> Attributes:
    return {name: element.get(name, "") for name in names if element.get(name)}
