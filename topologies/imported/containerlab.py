"""The topology file of containerlab (containerlab.dev, "Topology definition").

Its links have neither a delay nor a length. A link has two endpoints, each a text `node:interface` or a
mapping with `node` and `interface`. Links to the host, to the management network or to other machines leave
the lab.
"""

from typing import Any

from pydantic import BaseModel

from topologies.document import parse_document, validated
from topologies.errors import InputError
from topologies.imported.network import Edge, Network, Node, shown

OUTSIDE = frozenset({"host", "mgmt-net", "macvlan"})
"""Words in place of a node in an endpoint."""


class _Links(BaseModel):
    nodes: dict[str, Any]
    links: list[dict[str, Any]] = []


class _Lab(BaseModel):
    name: str = ""
    topology: _Links


def read_containerlab(text: str, file: str, name: str, origin: str) -> Network:
    """Parse a topology file. Raises InputError."""
    lab = validated(_Lab, parse_document(file, text))
    ends = [_ends(link, file, number) for number, link in enumerate(lab.topology.links)]
    edges = tuple(Edge(*each) for each in ends if each)
    outside = len(ends) - len(edges)
    return Network(
        file,
        lab.name or name,
        origin,
        {node: Node(node, node) for node in lab.topology.nodes},
        edges,
        left_out=(f"{outside} links that leave the lab",) if outside else (),
    )


def _ends(link: dict[str, Any], file: str, number: int) -> tuple[str, str] | None:
    """Return the nodes that a link joins; None if it leaves the lab."""
    if link.get("type", "veth") != "veth":
        return None
    given = link.get("endpoints")
    nodes = [_node(each) for each in given] if isinstance(given, list) else []
    if len(nodes) != 2 or "" in nodes:
        example = "[node1:eth1, node2:eth1]"
        problem = f"should be two endpoints, such as {example}, not {shown(str(given))}"
        raise InputError(file, None, f"topology.links.{number}.endpoints", problem)
    return None if OUTSIDE & set(nodes) else (nodes[0], nodes[1])


def _node(endpoint: Any) -> str:
    if isinstance(endpoint, dict):
        endpoint = endpoint.get("node")
    return endpoint.partition(":")[0] if isinstance(endpoint, str) else ""
