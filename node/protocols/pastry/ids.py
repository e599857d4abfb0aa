"""Node ids and keys: numbers of 128 bits on a ring, read as digits of b bits each.

Pastry, section 2 of both Scribe papers; ids are SHA-1 of a name, cut to their first 128 bits.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from node.core.message_layout import ADDRESS, Field

ID_BITS = 128
RING = 1 << ID_BITS


@dataclass(frozen=True, slots=True)
class NodeHandle:
    """A node: its id, and where it listens (an IPv4 address as a number)."""

    reads: ClassVar = ("{id}",)

    id: Annotated[int, Field("K", "", "the node's id", columns=("key",))]
    address: Annotated[int, Field("I", ADDRESS, "where it listens")]


def id_of(name: str) -> int:
    """The id of a node or the key of a topic, by its name."""
    return int.from_bytes(hashlib.sha1(name.encode(), usedforsecurity=False).digest()[: ID_BITS // 8], "big")


def digit(of: int, row: int, b: int) -> int:
    """The digit at a place, from 0 for the first one; b bits each."""
    return (of >> (ID_BITS - b * (row + 1))) & ((1 << b) - 1)


def shared_digits(first: int, second: int, b: int) -> int:
    """How many digits two ids have in common from the first one on."""
    return (ID_BITS - (first ^ second).bit_length()) // b


def distance(first: int, second: int) -> int:
    """How far apart two ids are on the ring, the shorter way round."""
    clockwise = (first - second) % RING
    return min(clockwise, RING - clockwise)


def closest(key: int, candidates: Iterable[NodeHandle]) -> NodeHandle:
    """The numerically closest node to a key; of two as close, the one with the smaller id."""
    return min(candidates, key=lambda each: (distance(each.id, key), each.id))
