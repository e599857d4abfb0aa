"""What the drivers publish: events of one size, at a rate (open loop) or as fast as they are acknowledged."""

from typing import Self

from pydantic import Field, model_validator

from topologies.strict import EventRatePerS, Flag, SizeBytes, StrictModel, problem

EVENT_SIZE_BYTES_MAX = 65_536
RATE_PER_S_MAX = 100_000_000


class Workload(StrictModel):
    """The load of each driver."""

    event_size_bytes: SizeBytes = Field(ge=1, le=EVENT_SIZE_BYTES_MAX)
    """Payload of an event."""
    rate_per_s: EventRatePerS | None = Field(None, gt=0, le=RATE_PER_S_MAX)
    """Open loop: events a second of each driver, whatever the system makes of them."""
    closed_loop: Flag = False
    """Closed loop: each driver publishes as fast as its events are acknowledged."""

    @model_validator(mode="after")
    def _one_kind_of_loop(self) -> Self:
        if self.closed_loop and self.rate_per_s is not None:
            raise problem("a closed loop has no rate: take one of the two away", "closed_loop")
        if not self.closed_loop and self.rate_per_s is None:
            raise problem("needs a rate, such as 20000/s, or closed_loop: true")
        return self
