"""Long messages over slow links: what is known of those that are on their way, from a node and to it.

Answers to a long message, and to what stands in line behind it, come late. So a node that has seen parts of
one for a while says so to its sender, which then waits for it.
"""

from dataclasses import dataclass

from node.core.peers.peer_pool import Address

NEVER_US = -(1 << 60)


@dataclass(slots=True)
class _Times:
    """part: a part of a message came last; first_part: the first of those that came without a long pause;
    told: its sender was told; coming: the other node told that parts of ours come.
    """

    part_us: int = NEVER_US
    first_part_us: int = NEVER_US
    told_us: int = NEVER_US
    coming_us: int = NEVER_US


_UNKNOWN = _Times()


class LongMessages:
    """What one node knows of long messages. often_us: how long it waits before it tells a sender."""

    def __init__(self, often_us: int) -> None:
        self._often_us = often_us
        self._times: dict[Address, _Times] = {}

    def part_came(self, address: Address, now_us: int) -> bool:
        """Note that a part of a message came from a node; returns whether to tell it so."""
        times = self._times.setdefault(address, _Times())
        if now_us - times.part_us > 2 * self._often_us:
            times.first_part_us = now_us
        times.part_us = now_us
        if min(now_us - times.first_part_us, now_us - times.told_us) < self._often_us:
            return False
        times.told_us = now_us
        return True

    def told(self, address: Address, now_us: int) -> None:
        """Note that a node tells that parts of a message from here come."""
        self._times.setdefault(address, _Times()).coming_us = now_us

    def received_part(self, address: Address, since_us: int) -> bool:
        """Whether a part came from a node since a time."""
        return self._times.get(address, _UNKNOWN).part_us > since_us

    def is_coming(self, address: Address, since_us: int) -> bool:
        """Whether a node has told since a time that parts of a message from here come."""
        return self._times.get(address, _UNKNOWN).coming_us > since_us
