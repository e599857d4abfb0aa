"""The routing table: by row the nodes that share so many digits with one, by column the digit after these.

Of all nodes that fit a slot the one is kept that is nearest by round-trip time, as far as it was measured:
that is Pastry's locality. Only rows that have an entry are held.
"""

from collections.abc import Iterator

from node.protocols.pastry.ids import digit, shared_digits
from node.protocols.reachability.nodes import NodeHandle

UNMEASURED_US = 1 << 62
"""Further away than anything that was measured."""

Row = dict[int, tuple[NodeHandle, int]]
"""By digit: who, and the round-trip time in microseconds."""


class RoutingTable:
    """Of one node; digits of `b` bits."""

    def __init__(self, own: int, b: int) -> None:
        self._own = own
        self._b = b
        self.rows: dict[int, Row] = {}

    def __iter__(self) -> Iterator[NodeHandle]:
        return (node for row in self.rows.values() for node, _ in row.values())

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))

    def slot(self, node_id: int) -> tuple[int, int]:
        """The row and column where an id belongs."""
        row = shared_digits(self._own, node_id, self._b)
        return row, digit(node_id, row, self._b)

    def entry(self, key: int) -> NodeHandle | None:
        """The node that shares one digit more with the key than this one does, if one is known."""
        row = shared_digits(self._own, key, self._b)
        found = self.rows.get(row, {}).get(digit(key, row, self._b))
        return found[0] if found else None

    def row(self, number: int) -> list[NodeHandle]:
        """The nodes of a row."""
        return [node for node, _ in self.rows.get(number, {}).values()]

    def is_wanted(self, node: NodeHandle) -> bool:
        """Whether its slot is empty, or has another node, so that its round-trip time is worth measuring."""
        if node.id == self._own:
            return False
        row, column = self.slot(node.id)
        found = self.rows.get(row, {}).get(column)
        return found is None or found[0].id != node.id

    def offer(self, node: NodeHandle, rtt_us: int = UNMEASURED_US) -> bool:
        """Take a node in if its slot is empty, or its node further away; whether it stands there now."""
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
        """Whether it was there."""
        row, column = self.slot(node.id)
        entries = self.rows.get(row, {})
        if column not in entries or entries[column][0].id != node.id:
            return False
        del entries[column]
        if not entries:
            del self.rows[row]
        return True
