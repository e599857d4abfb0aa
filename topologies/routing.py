"""How the gateways of a topology find their routes: fixed, or by a routing protocol with its timers."""

from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from topologies.strict import DurationUs, StrictModel, WholeNumber, problem

STATIC: Final = "static"
OSPF, BGP = "ospf", "bgp"
SECOND_US = 1_000_000
STOCK_US = {OSPF: (10 * SECOND_US, 40 * SECOND_US), BGP: (60 * SECOND_US, 180 * SECOND_US)}
"""The default times of FRR between two hellos, and until a silent neighbour counts as dead."""


class Bfd(StrictModel):
    """Bidirectional forwarding detection (RFC 5880) between the gateways of each link."""

    interval_us: DurationUs = Field(300_000, ge=10_000, le=60 * SECOND_US)
    """The time between two packets; whole milliseconds."""
    multiplier: WholeNumber = Field(3, ge=2, le=255)
    """Missing packets after which a neighbour counts as dead."""

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
