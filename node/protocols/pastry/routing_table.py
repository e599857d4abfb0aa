"""The routing table: the row is the number of digits shared with the owner, the column the next digit.

A slot has the nearest suitable node by measured round-trip time: that is Pastry's locality. Only rows with
entries are stored.
"""

from collections.abc import Iterator

from node.protocols.pastry.ids import digit, shared_digits
from node.protocols.reachability.nodes import NodeHandle

UNMEASURED_US = 1 << 62
"""Greater than any measured time."""

Row = dict[int, tuple[NodeHandle, int]]
"""By digit: node and round-trip time in microseconds."""


class RoutingTable:
    """The routing table of one node, with digits of `b` bits."""

    def __init__(self, own: int, b: int) -> None:
        self._own = own
        self._b = b
        self.rows: dict[int, Row] = {}

    def __iter__(self) -> Iterator[NodeHandle]:
        return (node for row in self.rows.values() for node, _ in row.values())

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))

    def slot(self, node_id: int) -> tuple[int, int]:
        """Return the row and column of an id."""
        row = shared_digits(self._own, node_id, self._b)
        return row, digit(node_id, row, self._b)

    def entry(self, key: int) -> NodeHandle | None:
        """Return the node that shares one digit more with the key than this one, if known."""
        row = shared_digits(self._own, key, self._b)
        found = self.rows.get(row, {}).get(digit(key, row, self._b))
        return found[0] if found else None

    def row(self, number: int) -> list[NodeHandle]:
        """Return the nodes of a row."""
        return [node for node, _ in self.rows.get(number, {}).values()]

    def is_wanted(self, node: NodeHandle) -> bool:
        """Return whether the node's slot is empty or has another node, so that it should be measured."""
        if node.id == self._own:
            return False
        row, column = self.slot(node.id)
        found = self.rows.get(row, {}).get(column)
        return found is None or found[0].id != node.id

    def offer(self, node: NodeHandle, rtt_us: int = UNMEASURED_US) -> bool:
        """Add a node if its slot is empty or has a node further away; return whether it is there now."""
        if node.id == self._own:
            return False
        row, column = self.slot(node.id)
        entries = self.rows.setdefault(row, {})
        found = entries.get(column)
        if found is None or found[0].id == node.id or rtt_us < found[1]:
            entries[column] = node, rtt_us
            return True
        return False

    def remove(self, node: NodeHandle) -> bool:
        """Remove a node; return whether it was there."""
        row, column = self.slot(node.id)
        entries = self.rows.get(row, {})
        if column not in entries or entries[column][0].id != node.id:
            return False
        del entries[column]
        if not entries:
            del self.rows[row]
        return True
