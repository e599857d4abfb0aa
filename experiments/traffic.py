"""Background traffic: `traffic:` of an experiment, flows between regions that share the system's links.

TCP flows are unlimited or have a rate; UDP flows have a rate. Each sends all the time, or on and off in
turns. iperf3 generates them, in whole seconds. Each on-period is a separate burst with new connections.
Dedicated hosts send and receive them (`testbed.planning`), so that they share only the links with the system.
In run.json they are an `experiments.planned.plan.TrafficPlan`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from topologies.strict import DurationUs, Name, RateBitsPerS, StrictModel, WholeNumber, problem

TRAFFIC_MAX = 20
"""Limit of entries of an experiment."""
FLOWS_MAX = 64
BURSTS_MAX = 200
"""Limit for all entries together: each burst has a server that listens from the start."""
RATE_BITS_PER_S_MAX = 1_000_000_000
"""Rate that one machine can emulate and capture beside a system; also the largest link that TCP may fill."""
RATE_BITS_PER_S_MIN = 10_000
SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Burst:
    """A period in which an entry sends: microseconds since time 0, and whole seconds."""

    at_us: int
    length_s: int


class Traffic(StrictModel):
    """Flows from one region to another. Data flows to the second; TCP acknowledgements flow back."""

    name: Name
    """Its name in reports and expectations."""
    origin: str = Field(alias="from")
    """The sending region."""
    target: str = Field(alias="to")
    """The receiving region."""
    tcp: WholeNumber | None = Field(None, ge=1, le=FLOWS_MAX)
    """The number of TCP flows, which are unlimited without a rate."""
    udp_bits_per_s: RateBitsPerS | None = Field(None, ge=RATE_BITS_PER_S_MIN, le=RATE_BITS_PER_S_MAX)
    """The rate of one UDP flow."""
    rate_bits_per_s: RateBitsPerS | None = Field(None, ge=RATE_BITS_PER_S_MIN, le=RATE_BITS_PER_S_MAX)
    """The limit of all TCP flows together."""
    at_us: DurationUs = 0
    """The start, from the start of the run."""
    for_us: DurationUs | None = Field(None, ge=SECOND_US)
    """The duration in whole seconds; default: to the end of the run."""
    up_us: DurationUs | None = Field(None, ge=SECOND_US)
    """The length of each burst in whole seconds; default: the whole time."""
    down_us: DurationUs | None = Field(None, gt=0)
    """The pause between bursts."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.tcp is None) == (self.udp_bits_per_s is None):
            raise problem("should have either tcp (how many flows) or udp (a rate)")
        if self.rate_bits_per_s is not None and self.tcp is None:
            raise problem("is for tcp: udp has its rate already", "rate")
        if (self.up_us is None) != (self.down_us is None):
            raise problem("needs both up and down", "up" if self.up_us is None else "down")
        for field, given_us in (("for", self.for_us), ("up", self.up_us)):
            if given_us is not None and given_us % SECOND_US:
                raise problem("should be whole seconds: the generator counts in these", field)
        if self.origin == self.target:
            raise problem(f"goes from {self.origin} to itself: traffic is for links between regions", "to")
        return self

    @property
    def asked_bits_per_s(self) -> int | None:
        """The requested rate while it sends; None: unlimited."""
        return self.rate_bits_per_s if self.tcp is not None else self.udp_bits_per_s

    def end_us(self, duration_us: int) -> int:
        """Return the end in a run of this length."""
        return duration_us if self.for_us is None else self.at_us + self.for_us

    def bursts(self, duration_us: int) -> Iterator[Burst]:
        """Yield the bursts in a run of this length; a rest of less than a second is dropped."""
        end_us = self.end_us(duration_us)
        up_us, period_us = end_us - self.at_us, end_us - self.at_us
        if self.up_us is not None and self.down_us is not None:
            up_us, period_us = self.up_us, self.up_us + self.down_us
        for at_us in range(self.at_us, end_us, max(period_us, SECOND_US)):
            length_s = min(up_us, end_us - at_us) // SECOND_US
            if length_s:
                yield Burst(at_us, length_s)

    def time_problem(self, duration_us: int) -> tuple[str, str] | None:
        """Return the field and what is wrong with it in a run of this length, or None."""
        if self.at_us >= duration_us:
            return (
                "at",
                f"{self.at_us / 1e6:.12g} s is not before the end of the run, {duration_us / 1e6:.12g} s",
            )
        end_us = self.end_us(duration_us)
        if end_us > duration_us:
            return (
                "for",
                f"ends at {end_us / 1e6:.12g} s, after the end of the run, {duration_us / 1e6:.12g} s",
            )
        if end_us - self.at_us < SECOND_US:
            return "at", "leaves less than a second to the end of the run"
        return None


def _named_apart(traffic: Sequence[Traffic]) -> Sequence[Traffic]:
    first_of: dict[str, int] = {}
    for index, entry in enumerate(traffic):
        if entry.name in first_of:
            raise problem(f"the name {entry.name} is taken by traffic.{first_of[entry.name]}", index, "name")
        first_of[entry.name] = index
    return traffic


TrafficField = Annotated[tuple[Traffic, ...], Field(max_length=TRAFFIC_MAX), AfterValidator(_named_apart)]


def check_times(traffic: Sequence[Traffic], duration_us: int) -> None:
    """Check that all entries fit into a run of this length. Raises a problem."""
    for index, entry in enumerate(traffic):
        if found := entry.time_problem(duration_us):
            raise problem(found[1], index, found[0])
    bursts = sum(1 for entry in traffic for _ in entry.bursts(duration_us))
    if bursts > BURSTS_MAX:
        raise problem(f"begins {bursts} times, all together: at most {BURSTS_MAX} are possible")
