"""The memory of the relay's receive rings, by the rate and the queue of each link.

A port's rings hold the frames that arrive while the relay does not read: during its usual pause, and on slow
links also a full queue and the frames that arrive while a busy machine keeps the relay from its processor. A
slot is as large as the largest frame of its ring, so there are four kinds of ring: for single segments, for
pairs of segments (TCP's least offloaded frame: a process that sends to 39 peers at once fills 40 slots), for
offloaded frames of a few segments (from senders that catch up in small pieces), and for those of up to 64
KiB.

All rings of a relay share bounded memory. If it does not suffice, all are scaled down by the same factor, but
not below a minimum size.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from topologies.link_parameters import LinkParameters, queue_limit_packets

RINGS_BYTES_MAX = 256 << 20  # of all receive rings; new memory costs up to 4 ms/MiB on a virtual machine
PAUSE_US = 10_000  # longest pause of the relay between two polls; its own work takes some 2 ms of it
# longest time for which a busy machine may keep the relay from its processor; cheap for slow links
AWAY_US = 250_000
AWAY_BYTES_MAX = 2 << 20  # up to which a ring is sized by AWAY_US: links of some 50 Mbit/s
UNLIMITED_BITS_PER_S = 4_000_000_000  # assumed if no rate is configured: the most that a processor can send
NARROW_BITS_PER_S = 300_000_000  # on slower links, frames arrive faster than the link's rate: from a LAN


@dataclass(frozen=True, slots=True)
class RingKind:
    """Rings for frames of `above_bytes` + 1 to `frame_bytes_max`.

    usual_bytes: the size of such frames under load. least_bytes: the size of the smallest ring.
    """

    above_bytes: int
    frame_bytes_max: int
    slot_bytes: int
    block_bytes: int  # the kernel's unit of allocation; a slot does not cross from one to the next
    usual_bytes: int
    least_bytes: int

    @property
    def block_slots(self) -> int:
        """The number of slots in a block."""
        return self.block_bytes // self.slot_bytes


KINDS = (  # the ring's own headers take some 100 bytes of a slot
    RingKind(-1, 1_800, 2 << 10, 1 << 18, 1_514, 1 << 18),
    RingKind(1_800, 3_900, 4 << 10, 1 << 18, 2_962, 1 << 18),
    RingKind(3_900, 16_000, 16 << 10, 1 << 18, 6_000, 1 << 18),
    RingKind(16_000, 66 << 10, 68 << 10, 1 << 19, 32_000, 1 << 19),
)


def port_blocks(links: Sequence[LinkParameters]) -> list[tuple[int, ...]]:
    """Return each port's number of blocks per ring (`KINDS`), from its link's rate and queue.

    The total stays within `RINGS_BYTES_MAX`, unless even the smallest rings of all ports exceed it.
    """
    wanted = [[_wanted_bytes(kind, link) for kind in KINDS] for link in links]
    least = [kind.least_bytes for kind in KINDS]
    room = RINGS_BYTES_MAX - len(wanted) * sum(least)
    more = sum(max(0, want - few) for row in wanted for want, few in zip(row, least, strict=True))
    factor = min(1.0, max(0, room) / more) if more else 0.0
    return [
        tuple(
            (few + int(max(0, want - few) * factor)) // kind.block_bytes
            for kind, want, few in zip(KINDS, row, least, strict=True)
        )
        for row in wanted
    ]


def _wanted_bytes(kind: RingKind, link: LinkParameters) -> int:
    """Return the memory for the frames that arrive in a pause, if all are of this kind."""
    rate_bits_per_s = link.rate_bits_per_s or UNLIMITED_BITS_PER_S
    pause_bytes = max(rate_bits_per_s, NARROW_BITS_PER_S) * PAUSE_US // 8_000_000
    queue_bytes = (queue_limit_packets(link) or 0) * link.mtu_bytes
    away_bytes = queue_bytes + rate_bits_per_s * AWAY_US // 8_000_000
    slots = -(-max(pause_bytes, away_bytes if away_bytes <= AWAY_BYTES_MAX else 0) // kind.usual_bytes)
    return -(-slots // kind.block_slots) * kind.block_bytes
