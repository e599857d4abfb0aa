"""Node ids and keys: numbers of 128 bits on a ring, read as digits of b bits each.

Source: Pastry, section 2 of both Scribe papers. Ids are the first 128 bits of the SHA-1 of a name.
"""

from collections.abc import Iterable

from node.protocols.reachability.nodes import ID_BITS, NodeHandle

RING = 1 << ID_BITS


def digit(of: int, row: int, b: int) -> int:
    """Return the digit in a row, counted from 0 at the most significant end; b bits each."""
    return (of >> (ID_BITS - b * (row + 1))) & ((1 << b) - 1)


def shared_digits(first: int, second: int, b: int) -> int:
    """Return the number of leading digits that two ids share."""
    return (ID_BITS - (first ^ second).bit_length()) // b


def distance(first: int, second: int) -> int:
    """Return the distance of two ids on the ring, the shorter way."""
    clockwise = (first - second) % RING
    return min(clockwise, RING - clockwise)


def closest(key: int, candidates: Iterable[NodeHandle]) -> NodeHandle:
    """Return the node numerically closest to the key; at the same distance, that with the smaller id."""
    return min(candidates, key=lambda each: (distance(each.id, key), each.id))
