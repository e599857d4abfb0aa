"""A complete overlay that is built at once, without joins, as if every node knew all others.

For simulations of many nodes. Each slot of a routing table has the nearest suitable node, a random one of
several equally near ones; leaf sets are the neighbours on the ring. Joins lead to the same result except for
slots whose nearest node the owner did not learn of (section 2 of both Scribe papers, "proximity").

Tables are arrays at first and become a node's own on first access (`LazyRoutingTable`), so that a hundred
thousand idle nodes need little memory.
"""

from bisect import bisect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from node.core.peers.peer_pool import Address
from node.protocols.pastry.ids import closest
from node.protocols.pastry.leaf_set import LeafSet
from node.protocols.pastry.messages import RoutePhase
from node.protocols.pastry.overlay import HOPS_MAX, Pastry
from node.protocols.pastry.routing_table import RoutingTable, Row
from node.protocols.reachability.nodes import ID_BITS, NodeHandle

NodeIndexes = npt.NDArray[Any]
"""Nodes, as indexes into the order of ids."""
SMALL = 64
"""Groups of at most this many nodes with a common prefix are compared pair by pair."""
TOP_BITS = 64


class Proximity(Protocol):
    """Distances between nodes, which are numbered in the order of their ids."""

    rng: np.random.Generator  # decides between equally near nodes

    def nearest(self, nodes: NodeIndexes, candidates: NodeIndexes) -> NodeIndexes:
        """Return for each node the nearest candidate; a random one of several equally near ones."""

    def delays_us(self, nodes: NodeIndexes, others: NodeIndexes) -> NodeIndexes:
        """Return the one-way delays in microseconds between the nodes and others, pair by pair."""

    def delay_between(self) -> Callable[[int, int], int]:
        """Return a function that returns the one-way delay between two nodes in microseconds."""


class DirectOverlay:
    """Tables and leaf sets of all nodes. `handles` are in the order of ids."""

    def __init__(self, nodes: Sequence[NodeHandle], proximity: Proximity, b: int, leaf_set: int) -> None:
        self.handles = sorted(nodes, key=lambda each: each.id)
        self.places = {handle.address: place for place, handle in enumerate(self.handles)}
        self._b, self._half = b, leaf_set // 2
        self._proximity = proximity
        top = [handle.id >> (ID_BITS - TOP_BITS) for handle in self.handles]
        self._top = np.array(top, np.uint64)
        assert len(np.unique(self._top)) == len(top), "two ids share their first 64 bits"
        self._entries = self._slots()

    # --- Tables

    def _slots(self) -> tuple[NodeIndexes, NodeIndexes, NodeIndexes, NodeIndexes]:
        """Return the entries of all tables: start index per owner; row, column and node per entry."""
        found: list[tuple[NodeIndexes, int | NodeIndexes, int | NodeIndexes, NodeIndexes]] = []
        buckets, row = [np.arange(len(self.handles))], 0
        while buckets:
            split: list[NodeIndexes] = []
            for bucket in buckets:
                if len(bucket) <= SMALL:
                    found.append(self._by_pairs(bucket))
                    continue
                digits = self._digits(bucket, row)
                groups = [(digit, bucket[digits == digit]) for digit in range(1 << self._b)]
                for digit, candidates in groups:
                    others = bucket[digits != digit]
                    if len(candidates) and len(others):
                        found.append((others, row, digit, self._proximity.nearest(others, candidates)))
                split += [group for _, group in groups if len(group) > 1]
            buckets, row = split, row + 1
        return self._sorted(found)

    def _digits(self, nodes: NodeIndexes, row: int) -> NodeIndexes:
        shift = np.uint64(TOP_BITS - self._b * (row + 1))
        return ((self._top[nodes] >> shift) & np.uint64((1 << self._b) - 1)).astype(np.int64)

    def _by_pairs(self, bucket: NodeIndexes) -> tuple[NodeIndexes, NodeIndexes, NodeIndexes, NodeIndexes]:
        """Return the nearest node of each slot, among few nodes that share a prefix."""
        size = len(bucket)
        owner, other = np.repeat(bucket, size), np.tile(bucket, size)
        owner, other = owner[owner != other], other[owner != other]
        differing = self._top[owner] ^ self._top[other]
        # may round up to the next power of two: corrected below
        bits = np.frexp(differing.astype(np.float64))[1]
        bits -= (differing >> (bits.clip(1, TOP_BITS) - 1).astype(np.uint64)) == 0
        rows = (TOP_BITS - bits) // self._b
        shift = (TOP_BITS - self._b * (rows + 1)).astype(np.uint64)
        columns = ((self._top[other] >> shift) & np.uint64((1 << self._b) - 1)).astype(np.int64)
        chance = self._proximity.rng.random(len(owner))
        order = np.lexsort((chance, self._proximity.delays_us(owner, other), columns, rows, owner))
        slots = np.stack((owner, rows, columns))[:, order]
        first = np.ones(len(order), bool)
        first[1:] = (slots[:, 1:] != slots[:, :-1]).any(axis=0)
        return slots[0][first], slots[1][first], slots[2][first], other[order][first]

    def _sorted(
        self, found: list[tuple[NodeIndexes, int | NodeIndexes, int | NodeIndexes, NodeIndexes]]
    ) -> tuple[NodeIndexes, NodeIndexes, NodeIndexes, NodeIndexes]:
        owners = np.concatenate([owner for owner, *_ in found]).astype(np.int32)
        rows = np.concatenate([np.broadcast_to(row, owner.shape) for owner, row, _, _ in found])
        columns = np.concatenate([np.broadcast_to(column, owner.shape) for owner, _, column, _ in found])
        nodes = np.concatenate([node for *_, node in found]).astype(np.int32)
        order = np.lexsort((columns, rows, owners))
        starts = np.searchsorted(owners[order], np.arange(len(self.handles) + 1))
        return starts, rows[order].astype(np.int8), columns[order].astype(np.int16), nodes[order]

    def rows_of(self, place: int) -> dict[int, Row]:
        """Return a node's routing table."""
        starts, rows, columns, nodes = self._entries
        mine = slice(starts[place], starts[place + 1])
        others = nodes[mine]
        delays_us = self._proximity.delays_us(np.broadcast_to(np.int64(place), others.shape), others)
        handles, found = self.handles, dict[int, Row]()
        mine_as_lists = (each.tolist() for each in (rows[mine], columns[mine], others, delays_us))
        for row, column, node, delay_us in zip(*mine_as_lists, strict=True):
            found.setdefault(row, {})[column] = handles[node], 2 * delay_us
        return found

    # --- Leaf sets

    def leaf_set_of(self, place: int) -> tuple[list[NodeHandle], list[NodeHandle]]:
        """Return a node's neighbours on the ring: smaller and larger ones, nearest first."""
        count, handles = len(self.handles), self.handles
        near = range(1, min(self._half, count - 1) + 1)
        return [handles[place - step] for step in near], [handles[(place + step) % count] for step in near]

    def closest(self, key: int) -> NodeHandle:
        """Return the node that is closest to a key."""
        place = bisect(self.handles, key, key=lambda each: each.id)
        return closest(key, (self.handles[place - 1], self.handles[place % len(self.handles)]))

    def settle(self, pastry: Pastry) -> None:
        """Give a node the state that it would have after its join."""
        place = self.places[pastry.own.address]
        pastry.nodes.table = LazyRoutingTable(pastry.own.id, self._b, self, place)
        pastry.nodes.leaf_set = LeafSet.given(pastry.own, 2 * self._half, *self.leaf_set_of(place))
        pastry.is_active = True


def way_of(node_at: Callable[[Address], Pastry], start: Address, key: int) -> list[Address]:
    """Return the nodes on the route of a key from a start node, by their tables."""
    way, phase = [start], int(RoutePhase.PREFIX)
    while len(way) <= HOPS_MAX:
        following, phase = node_at(way[-1]).nodes.following(key, phase)
        if following.address == way[-1]:
            break
        way.append(following.address)
    return way


class LazyRoutingTable(RoutingTable):
    """A routing table that is built on first access."""

    def __init__(self, own: int, b: int, overlay: DirectOverlay, place: int) -> None:
        self._own, self._b = own, b
        self._overlay, self._place = overlay, place

    @cached_property
    def rows(self) -> dict[int, Row]:  # type: ignore[override] # computed once, then as in any table
        """See `RoutingTable`."""
        return self._overlay.rows_of(self._place)
