"""Whether a graph is connected."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def connected(nodes: Iterable[Node], edges: Iterable[tuple[Node, Node]]) -> bool:
    """Whether every node is reached from every other along undirected edges."""
    joined: dict[Node, list[Node]] = {node: [] for node in nodes}
    for a, b in edges:
        joined[a].append(b)
        joined[b].append(a)
    if not joined:
        return True
    seen = {next(iter(joined))}
    frontier = list(seen)
    while frontier:
        for node in joined[frontier.pop()]:
            if node not in seen:
                seen.add(node)
                frontier.append(node)
    return len(seen) == len(joined)
