"""Node ids and keys: numbers of 128 bits on a ring, read as digits of b bits each.

Pastry, section 2 of both Scribe papers; ids are SHA-1 of a name, cut to their first 128 bits.
"""

from collections.abc import Iterable

from node.protocols.reachability.nodes import ID_BITS, NodeHandle

RING = 1 << ID_BITS


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
