"""Node handles, as messages of overlays contain them."""

import hashlib
from dataclasses import dataclass
from typing import Annotated, ClassVar

from node.core.message_layout import ADDRESS, Field

ID_BITS = 128


@dataclass(frozen=True, slots=True)
class NodeHandle:
    """A node: its id and its listen address (an IPv4 address as a number)."""

    reads: ClassVar = ("{id}",)

    id: Annotated[int, Field("K", "", "the node's id", columns=("key",))]
    address: Annotated[int, Field("I", ADDRESS, "listen address of the node")]


def id_of(name: str) -> int:
    """Return the id of a node name or a key: the first 128 bits of its SHA-1."""
    return int.from_bytes(hashlib.sha1(name.encode(), usedforsecurity=False).digest()[: ID_BITS // 8], "big")
