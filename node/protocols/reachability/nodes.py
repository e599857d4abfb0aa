"""Nodes of overlays, as their messages name them."""

import hashlib
from dataclasses import dataclass
from typing import Annotated, ClassVar

from node.core.message_layout import ADDRESS, Field

ID_BITS = 128


@dataclass(frozen=True, slots=True)
class NodeHandle:
    """A node: its id, and where it listens (an IPv4 address as a number)."""

    reads: ClassVar = ("{id}",)

    id: Annotated[int, Field("K", "", "the node's id", columns=("key",))]
    address: Annotated[int, Field("I", ADDRESS, "where it listens")]


def id_of(name: str) -> int:
    """The id of a node by its name, or a key: SHA-1, cut to its first 128 bits."""
    return int.from_bytes(hashlib.sha1(name.encode(), usedforsecurity=False).digest()[: ID_BITS // 8], "big")
