"""Long messages over slow links, from and to a node, while their transfer lasts.

Answers to a long message, and to the messages queued behind it, are late. So a node that has received parts
of a long message for some time notifies the sender, which then waits.
"""

from dataclasses import dataclass

from node.core.peers.peer_pool import Address

NEVER_US = -(1 << 60)


@dataclass(slots=True)
class _PartTimes:
    """Times of the last events per node.

    part: part of a message received; first_part: first one without a long pause since; told: notification
    sent to the sender; coming: notification received from the other node.
    """

    part_us: int = NEVER_US
    first_part_us: int = NEVER_US
    told_us: int = NEVER_US
    coming_us: int = NEVER_US


_UNKNOWN = _PartTimes()


class LongMessages:
    """Long messages of one node. often_us: minimum interval between notifications to a sender."""

    def __init__(self, often_us: int) -> None:
        self._often_us = often_us
        self._times: dict[Address, _PartTimes] = {}

    def part_came(self, address: Address, now_us: int) -> bool:
        """Record a received part of a message; return whether to notify the sender."""
        times = self._times.setdefault(address, _PartTimes())
        if now_us - times.part_us > 2 * self._often_us:
            times.first_part_us = now_us
        times.part_us = now_us
        if min(now_us - times.first_part_us, now_us - times.told_us) < self._often_us:
            return False
        times.told_us = now_us
        return True

    def notified(self, address: Address, now_us: int) -> None:
        """Record a notification that parts of a message from this node arrive."""
        self._times.setdefault(address, _PartTimes()).coming_us = now_us

    def received_part(self, address: Address, since_us: int) -> bool:
        """Return whether a part from the node has arrived since the given time."""
        return self._times.get(address, _UNKNOWN).part_us > since_us

    def is_coming(self, address: Address, since_us: int) -> bool:
        """Return whether the node has reported since the given time that parts from here arrive."""
        return self._times.get(address, _UNKNOWN).coming_us > since_us
