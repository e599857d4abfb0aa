"""Answers of a layer, collected for a time, so that one message to each peer contains many."""

from typing import Any

from node.core.peers.peer_pool import Address
from node.protocols.meghdoot.transport import OverlayTransport

ROWS_MAX = 1_000


class CollectedAnswers(dict[tuple[Address, type], list[Any]]):
    """Answers by receiver. kinds: the messages that contain them, in the order of sending to one peer.

    It extends `dict`, because each input checks whether it is empty.
    """

    def __init__(self, mail: OverlayTransport, *kinds: type) -> None:
        super().__init__()
        self._mail = mail
        self._kinds = kinds

    def add(self, address: Address, kind: type, row: Any) -> None:
        """Collect an answer."""
        self.setdefault((address, kind), []).append(row)

    def flush(self) -> None:
        """Send all answers."""
        for address, kind in list(self):
            self._send(address, kind)

    def flush_to(self, address: Address) -> None:
        """Send the answers for one peer, together with other messages to it."""
        for kind in self._kinds:
            self._send(address, kind)

    def _send(self, address: Address, kind: type) -> None:
        rows = self.pop((address, kind), ())
        for first in range(0, len(rows), ROWS_MAX):
            self._mail.send(address, kind(tuple(rows[first : first + ROWS_MAX])))
