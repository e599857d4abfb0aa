"""Answers of a peer, collected for a time, so that one message to each peer contains many."""

from typing import Any

from node.core.peers.peer_pool import Address
from node.protocols.meghdoot.messages import Confirm, Notified, RootConfirm, Subscribed
from node.protocols.meghdoot.transport import OverlayTransport

ROWS_MAX = 1_000
ORDER = {Confirm: 0, RootConfirm: 0, Notified: 1, Subscribed: 2}
"""Messages that contain answers, in the order of sending; those of the same place as they were collected."""


class CollectedAnswers(dict[tuple[Address, type], list[Any]]):
    """Answers by receiver and message.

    It extends `dict`, because each input checks whether it is empty.
    """

    def __init__(self, mail: OverlayTransport) -> None:
        super().__init__()
        self._mail = mail

    def add(self, address: Address, kind: type, row: Any) -> None:
        """Collect an answer."""
        self.setdefault((address, kind), []).append(row)

    def flush(self) -> None:
        """Send all answers."""
        for address, kind in sorted(self, key=lambda each: ORDER[each[1]]):
            self._send(address, kind)

    def flush_to(self, address: Address) -> None:
        """Send the answers for one peer, together with other messages to it."""
        for kind in ORDER:
            self._send(address, kind)

    def _send(self, address: Address, kind: type) -> None:
        rows = self.pop((address, kind), ())
        for first in range(0, len(rows), ROWS_MAX):
            self._mail.send(address, kind(tuple(rows[first : first + ROWS_MAX])))
