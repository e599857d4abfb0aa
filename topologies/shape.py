"""What one direction of a link does to the packets that cross it.

A `Shape` is the configured behaviour, as plain data: the topology files give it, faults change it, the links
carry it out and the analysis holds the measured behaviour against it. It says nothing about how it is done.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """One direction of a link.

    delay_us: one-way delay, microseconds; a packet is never earlier.
    jitter_us: half-width of the uniform spread around the delay, microseconds; at most the delay.
    loss: probability that an MTU-sized segment is dropped, 0 to 1.
    rate_bits_per_s: bits a second of MTU-sized segments with their headers; None is unlimited.
    queue_packets: MTU-sized segments that may wait for the rate; None is computed from rate and delay.
    mtu_bytes: largest IP packet.
    reorder: whether jitter may change the order of packets.
    """

    delay_us: int = 0
    jitter_us: int = 0
    loss: float = 0.0
    rate_bits_per_s: int | None = None
    queue_packets: int | None = None
    mtu_bytes: int = 1500
    reorder: bool = False
