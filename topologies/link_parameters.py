"""The configured behaviour of one direction of a link.

`LinkParameters` are plain data: topology files give them, faults change them, link emulators apply them, and
the analysis compares its measurements with them.

The default queue limit is computed here for every link emulator and for the analysis. A queue that is too
short starves TCP (one offloaded frame alone is 45 segments); one that is too long adds delay that was not
configured. The default holds the segments that the rate sends in one round trip, but at least in
`QUEUE_TIME_MIN_US`. Segments in flight (being delayed) do not count: an emulator whose queue also holds those
has to add them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

DELAY_US_MAX = 60_000_000
DEFAULT_MTU_BYTES = 1500


@dataclass(frozen=True, slots=True)
class LinkParameters:
    """The parameters of one direction of a link.

    delay_us: one-way delay, microseconds; a packet is never earlier.
    jitter_us: largest deviation from the delay, microseconds; no packet leaves before it arrives.
    jitter_quantiles: of the deviation, in parts of the jitter (`topologies.jitter`); none: uniform.
    jitter_correlation: correlation of consecutive packets' deviations from the delay, 0 to 1: the weight of
        the last deviation beside a new uniform one; correlated deviations spread less.
    loss: probability that an MTU-sized segment is dropped, 0 to 1.
    duplicate: probability that a segment leaves twice, one directly behind the other, 0 to 1.
    corrupt: probability that a bit of a segment is flipped after its checksums were completed, 0 to 1.
    loss_burst_packets: mean number of consecutive drops; None drops each segment independently.
    rate_bits_per_s: bits per second of MTU-sized segments with their headers; None is unlimited.
    queue_packets: MTU-sized segments that may wait for the rate; None: computed from rate and delay.
    mtu_bytes: largest IP packet.
    icmp_dropped: whether larger packets vanish without an ICMP message to their sender.
    reorder: whether jitter may change the order of packets.
    rate_traced, delay_traced: whether the link's trace gives the value from time 0 on (`link_trace`).
    """

    delay_us: int = 0
    jitter_us: int = 0
    loss: float = 0.0
    rate_bits_per_s: int | None = None
    queue_packets: int | None = None
    mtu_bytes: int = DEFAULT_MTU_BYTES
    reorder: bool = False
    loss_burst_packets: int | None = None
    jitter_correlation: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    jitter_quantiles: tuple[float, ...] = ()
    icmp_dropped: bool = False
    rate_traced: bool = False
    delay_traced: bool = False

    def with_values(self, values: Mapping[str, Any]) -> "LinkParameters":
        """Return the parameters with these values; a given rate or delay replaces a trace's."""
        untraced: dict[str, Any] = {
            traced: False
            for traced, name in (("rate_traced", "rate_bits_per_s"), ("delay_traced", "delay_us"))
            if name in values
        }
        return replace(self, **untraced, **values)

    @property
    def loss_chances(self) -> tuple[float, float] | None:
        """The probabilities that a burst of losses begins after a passed segment, and ends after a lost one.

        This is Gilbert's chain (Bell System Technical Journal 39, 1960) with a good state that loses no
        segment and a bad one that loses all. None if losses are independent.
        """
        if self.loss_burst_packets is None or not 0 < self.loss < 1:
            return None
        ends = 1 / self.loss_burst_packets
        return min(1.0, ends * self.loss / (1 - self.loss)), ends

    @property
    def interface_mtu_bytes(self) -> int:
        """The MTU of the gateways' interfaces: what is larger never enters the link."""
        return DEFAULT_MTU_BYTES if self.icmp_dropped else self.mtu_bytes

    @property
    def jitter_us_most(self) -> int:
        """The largest jitter with which no packet leaves before it arrives."""
        earliest = -self.jitter_quantiles[0] if self.jitter_quantiles else 1.0
        return int(self.delay_us / earliest) if earliest > 0 else self.jitter_us

    @property
    def impossible(self) -> tuple[str, str] | None:
        """The parameter (jitter or loss) that is impossible with the others, and why; or None."""
        if self.jitter_us > self.jitter_us_most:
            return "jitter", "more than the delay: a packet cannot leave before it arrives"
        burst = self.loss_burst_packets
        if burst is not None and burst / (burst + 1) < self.loss < 1:
            return "loss", f"more than bursts of {burst} allow: at least one packet passes between two bursts"
        return None


ETHERNET_BYTES = 14
QUEUE_TIME_MIN_US = 100_000
QUEUE_PACKETS_MIN = 64
PACE_NS = 250_000
"""An offloaded frame may leave a rate limiter in pieces of at most this duration, not only in segments."""


def queue_limit_packets(parameters: LinkParameters) -> int | None:
    """Return the queue limit in MTU-sized segments, given or computed; None without a rate."""
    if parameters.rate_bits_per_s is None:
        return None
    if parameters.queue_packets is not None:
        return parameters.queue_packets
    time_us = max(2 * parameters.delay_us, QUEUE_TIME_MIN_US)
    segment_bits = (parameters.mtu_bytes + ETHERNET_BYTES) * 8
    return max(QUEUE_PACKETS_MIN, -(-parameters.rate_bits_per_s * time_us // (segment_bits * 1_000_000)))
