"""How the gateways of a topology find their routes: fixed, or by a routing protocol with its timers."""

from math import ceil, inf
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from topologies.link_parameters import LinkParameters
from topologies.quantities import DURATION, FRACTION, RATE
from topologies.strict import DurationUs, StrictModel, WholeNumber, problem

STATIC: Final = "static"
OSPF, BGP = "ospf", "bgp"
SECOND_US = 1_000_000
STOCK_US = {OSPF: (10 * SECOND_US, 40 * SECOND_US), BGP: (60 * SECOND_US, 180 * SECOND_US)}
"""The default times of FRR between two hellos, and until a silent neighbour counts as dead."""
REACTS_S = {OSPF: 20, BGP: 130}
"""The time in which routes converge after a neighbour came or went: OSPF sends an update at most every 5 s
and retransmits it every 5 s (RFC 2328); BGP retries to connect every 120 s (RFC 4271, 8.2.2).
"""
OSPF_COST_US, OSPF_COST_MAX = 100, 65_535
"""The delay for each unit of OSPF's cost, and its largest cost (RFC 2328, 16 bits)."""
OSPF_DELAY_US_MAX = OSPF_COST_US * OSPF_COST_MAX
LOSS_MAX = 0.5
"""The limit of loss and of corruption: beyond it, adjacent gateways soon declare each other dead."""
RATE_SHARE_MAX = 0.5
"""The largest part of a link's rate that hellos and BFD may take."""
HELLO_BYTES, BFD_BYTES = {OSPF: 82, BGP: 85 + 66}, 66
"""The frame of a hello, BGP's with its acknowledgement (RFC 2328, 4271), and that of BFD (RFC 5880)."""


def ospf_cost(delay_us: int) -> int:
    """Return the cost that OSPF gets for a link direction."""
    return min(OSPF_COST_MAX, max(1, delay_us // OSPF_COST_US))


class Bfd(StrictModel):
    """Bidirectional forwarding detection (RFC 5880) between the gateways of each link."""

    interval_us: DurationUs = Field(300_000, ge=10_000, le=60 * SECOND_US)
    """The time between two packets; whole milliseconds."""
    multiplier: WholeNumber = Field(3, ge=2, le=255)
    """Missing packets after which a neighbour counts as dead."""

    @property
    def detects_us(self) -> int:
        """The silence after which a neighbour counts as dead."""
        return self.multiplier * self.interval_us

    @property
    def spare_us(self) -> int:
        """The largest delay of a packet beyond that of the one before it."""
        return self.detects_us - self.interval_us

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.interval_us % 1000:
            raise problem("should be whole milliseconds, as 100ms", "interval")
        return self


class Routing(StrictModel):
    """The routing protocol of all gateways, or only its name: `routing: ospf`."""

    protocol: Literal["static", "ospf", "bgp"]
    """static: fixed routes. ospf, bgp: FRR's daemons in the gateways."""
    hello_us: DurationUs | None = Field(None, ge=SECOND_US, le=3_600 * SECOND_US)
    """OSPF's hello interval, 10s by default, or BGP's keepalive, 60s; whole seconds."""
    dead_us: DurationUs | None = Field(None, ge=3 * SECOND_US, le=3_600 * SECOND_US)
    """OSPF's dead interval, 40s by default, or BGP's hold time, 180s; whole seconds."""
    bfd: Bfd | None = None
    """Detects dead neighbours sooner; off by default."""

    @property
    def timers_us(self) -> tuple[int, int]:
        """Return the hello and dead intervals of a routing protocol."""
        hello_us, dead_us = STOCK_US[self.protocol]
        return self.hello_us or hello_us, self.dead_us or dead_us

    @property
    def least_rate_bits_per_s(self) -> int:
        """The least rate of a link that carries the packets of neighbours."""
        bytes_per_s = HELLO_BYTES[self.protocol] * SECOND_US / self.timers_us[0]
        bytes_per_s += 0 if self.bfd is None else BFD_BYTES * SECOND_US / self.bfd.interval_us
        return ceil(8 * bytes_per_s / RATE_SHARE_MAX)

    def unfit(self, *both: LinkParameters) -> tuple[str, str] | None:
        """Return the field of a link over which gateways would never agree, and why; None if they can.

        both: its directions. FRR 8.4 was tried with delays up to 9 s and jitter up to 0.9 s: BFD sends each
        second until its neighbour has answered (RFC 5880, 6.8.3).
        """
        delays_us, jitters_us = [each.delay_us for each in both], [each.jitter_us for each in both]
        because = "because of topology.routing"
        for name in ("loss", "corrupt"):
            if any(getattr(each, name) >= LOSS_MAX for each in both):
                return name, f"must be less than {FRACTION.format(LOSS_MAX)} {because}"
        if any((each.rate_bits_per_s or inf) < self.least_rate_bits_per_s for each in both):
            return "rate", f"must be at least {RATE.format(self.least_rate_bits_per_s)} {because}"
        hello_us, dead_us = self.timers_us
        limits = [
            ("dead", dead_us // 2, dead_us - hello_us),
            *([] if self.bfd is None else [("bfd", self.bfd.detects_us + SECOND_US, self.bfd.spare_us)]),
        ]
        if self.protocol == OSPF and max(delays_us) > OSPF_DELAY_US_MAX:
            return "delay", f"must be at most {DURATION.format(OSPF_DELAY_US_MAX)}: the limit of OSPF's cost"
        for name, round_trip_us, jitter_us in limits:
            because = f"because of topology.routing.{name}"
            if 2 * max(jitters_us) > jitter_us:
                return "jitter", f"must be at most {DURATION.format(jitter_us // 2)} {because}"
            if sum((*delays_us, *jitters_us)) > round_trip_us:
                most = DURATION.format(round_trip_us)
                return "delay", f"a round trip must take at most {most}, with jitter, {because}"
        return None

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        return {"protocol": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _fits(self) -> Self:
        given = {name: getattr(self, f"{name}_us") for name in ("hello", "dead")}
        if self.protocol == STATIC:
            for name in (name for name, value in {**given, "bfd": self.bfd}.items() if value is not None):
                raise problem("is without effect with static routes: leave it out", name)
            return self
        for name in (name for name, value in given.items() if value is not None and value % SECOND_US):
            raise problem("should be whole seconds, as 10s", name)
        hello_us, dead_us = self.timers_us
        if dead_us <= hello_us:
            raise problem(f"should be longer than hello, {hello_us // SECOND_US}s", "dead")
        return self
