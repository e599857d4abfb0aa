"""Faults by chance, that every correct system survives: `nemesis:` in an experiment.

What may go wrong, how often and for how long. The schedule that follows from a seed is made by
`experiments.nemesis_schedule`.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from topologies.strict import DurationUs, Fraction, StrictModel, WholeNumber, problem

Kind = Literal["cut", "one-way-cut", "delay", "loss", "crash", "pause"]

ON_LINKS: tuple[Kind, ...] = ("cut", "one-way-cut", "delay", "loss")
ON_PROCESSES: tuple[Kind, ...] = ("crash", "pause")
FAULTS_MAX = 200
STEP_US = 1_000  # times are whole milliseconds


class Nemesis(StrictModel):
    """What may go wrong, how often and for how long."""

    kinds: tuple[Kind, ...] = Field((*ON_LINKS, *ON_PROCESSES), min_length=1)
    """cut, one-way-cut, delay and loss of links; crash (SIGKILL, started again later) and pause (SIGSTOP) of
    processes."""
    roles: tuple[str, ...] = ("proxy", "client", "driver", "configuration")
    """Whose processes crash and pause."""
    faults: WholeNumber = Field(10, ge=1, le=FAULTS_MAX)
    """How many disturbances; fewer where so many do not fit."""
    start_us: DurationUs = 1_000_000
    """Nothing is disturbed before."""
    shortest_us: DurationUs = Field(200_000, ge=STEP_US)
    """A disturbance lasts so long at least."""
    longest_us: DurationUs = Field(3_000_000, ge=STEP_US)
    """A disturbance lasts so long at most."""
    settle_us: DurationUs = 3_000_000
    """How long a process is left alone after it was disturbed, to catch up."""
    quiet_us: DurationUs = 5_000_000
    """Nothing is disturbed in this time before the drivers stop."""
    delay_us: DurationUs = Field(200_000, gt=0)
    """The largest delay that a link is given."""
    loss: Fraction = Field(0.05, gt=0, le=0.5)
    """The largest loss that a link is given."""

    def time_problem(self, duration_us: int) -> str | None:
        """Why there is no time for any disturbance in a run of this duration, or None."""
        if self.start_us + self.shortest_us + self.quiet_us > duration_us:
            return "start, shortest and quiet together are longer than the run"
        return None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.shortest_us > self.longest_us:
            raise problem("is longer than the longest", "shortest")
        return self
