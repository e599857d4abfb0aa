"""GraphML (graphml.graphdrawing.org): nodes and edges with data, whose keys the head of the file declares."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from topologies.errors import InputError
from topologies.imported.attributes import AttributeGraph, Attributes


def read_graphml(root: Element, file: str) -> AttributeGraph:
    """Return the first graph of a file. Raises InputError. Nested graphs are not read."""
    keys = list(children(root, "key"))
    names = {key.get("id", ""): key.get("attr.name", "").lower() for key in keys}
    graph = next(children(root, "graph"), None)
    if graph is None:
        raise InputError(file, None, "", "has no graph")
    of_nodes, of_edges = _defaults(keys, "node"), _defaults(keys, "edge")
    return AttributeGraph(
        _data(graph, names),
        graph.get("edgedefault") == "directed",
        tuple(of_nodes | _data(node, names) | _given(node, "id") for node in children(graph, "node")),
        tuple(
            of_edges | _data(edge, names) | _given(edge, "source", "target", "directed")
            for edge in children(graph, "edge")
        ),
    )


def _defaults(keys: list[Element], domain: str) -> dict[str, str]:
    """Return the values of nodes or edges without data of their own."""
    return {
        key.get("attr.name", "").lower(): default.text.strip()
        for key in keys
        if key.get("for") in {domain, "all"}
        for default in children(key, "default")
        if default.text
    }


def children(element: Element, name: str) -> Iterator[Element]:
    """Yield the children of this name, in any namespace."""
    return (child for child in element if child.tag.rpartition("}")[2] == name)


def _data(element: Element, names: Attributes) -> dict[str, str]:
    data = ((names.get(each.get("key", ""), ""), each.text) for each in children(element, "data"))
    return {name: text.strip() for name, text in data if name and text}


def _given(element: Element, *names: str) -> dict[str, str]:
    return {name: element.get(name, "") for name in names if element.get(name)}
