"""What every link emulator, and whoever judges one, takes for granted about a link's queue.

How many segments may wait for the rate where the configuration does not say:

A queue that is too short starves TCP (one offloaded frame alone is 45 segments), one that is too long adds
delay that nobody asked for. So it holds what the rate sends in one round trip, but at least in
`QUEUE_TIME_MIN_US`. Segments in flight (being delayed) are not in it: a kind whose queue also holds those
has to add them.
"""

from topologies.shape import Shape

ETHERNET_BYTES = 14
QUEUE_TIME_MIN_US = 100_000
QUEUE_PACKETS_MIN = 64
PACE_NS = 250_000
"""An offloaded frame may leave a rate in pieces of at most this long, rather than segment by segment."""


def queue_limit_packets(shape: Shape) -> int | None:
    """MTU-sized segments that may wait, given or computed from rate and delay; None where no rate limits."""
    if shape.rate_bits_per_s is None:
        return None
    if shape.queue_packets is not None:
        return shape.queue_packets
    time_us = max(2 * shape.delay_us, QUEUE_TIME_MIN_US)
    segment_bits = (shape.mtu_bytes + ETHERNET_BYTES) * 8
    return max(QUEUE_PACKETS_MIN, -(-shape.rate_bits_per_s * time_us // (segment_bits * 1_000_000)))
