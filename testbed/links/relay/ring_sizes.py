"""How many frames the receive rings of a port hold: by the rate of its link, and the time for which the relay
may be away.

While the relay is away (it admits a burst, or the scheduler has given its processor to others) the kernel
puts what arrives into the rings, and drops what finds no slot. A slot is as large as the largest frame of its
ring, so there are three kinds: single segments, offloaded frames of a few segments, which a sender makes
whose window is small or that catches up in small pieces, and offloaded frames of up to 64 KiB.

All rings of a run share a bounded memory. Where it does not suffice, all are shorter by the same factor, down
to a smallest size that every port gets in any case.
"""

from collections.abc import Sequence
from dataclasses import dataclass

RINGS_BYTES_MAX = 256 << 20  # for all receive rings; fresh memory costs up to 4 ms a MiB on a virtual machine
AWAY_US = 10_000  # for which the relay may be away; its own turns between two looks take some 2 ms
UNLIMITED_BITS_PER_S = 4_000_000_000  # at which frames come where no rate limits: what a processor can send
NARROW_BITS_PER_S = (
    300_000_000  # a narrower link is entered faster than it is left: from a LAN, into its queue
)


@dataclass(frozen=True, slots=True)
class RingKind:
    """Rings for frames of `above_bytes` + 1 to `frame_bytes_max`.

    usual_bytes: how small such frames are when there are many. least_bytes: the shortest ring.
    """

    above_bytes: int
    frame_bytes_max: int
    slot_bytes: int
    block_bytes: int  # the kernel's unit of allocation; a slot does not cross from one to the next
    usual_bytes: int
    least_bytes: int

    @property
    def block_slots(self) -> int:
        """Slots in a block."""
        return self.block_bytes // self.slot_bytes


KINDS = (  # the ring's own headers take some 100 bytes of a slot
    RingKind(-1, 1_800, 2 << 10, 1 << 18, 1_514, 1 << 18),
    RingKind(1_800, 16_000, 16 << 10, 1 << 18, 6_000, 1 << 18),
    RingKind(16_000, 66 << 10, 68 << 10, 1 << 19, 32_000, 1 << 19),
)


def port_blocks(rates_bits_per_s: Sequence[int | None]) -> list[tuple[int, ...]]:
    """Blocks of each of its rings (`KINDS`), for every port, given its link's rate (None: unlimited).

    All stay within `RINGS_BYTES_MAX`, unless there are so many ports that their shortest rings do not.
    """
    wanted = [[_wanted_bytes(kind, rate) for kind in KINDS] for rate in rates_bits_per_s]
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


def _wanted_bytes(kind: RingKind, rate_bits_per_s: int | None) -> int:
    """Memory for what comes in `AWAY_US`, all of it as frames of this kind."""
    rate_bits_per_s = max(rate_bits_per_s or UNLIMITED_BITS_PER_S, NARROW_BITS_PER_S)
    away_bytes = rate_bits_per_s * AWAY_US // 8_000_000
    slots = -(-away_bytes // kind.usual_bytes)
    return -(-slots // kind.block_slots) * kind.block_bytes
