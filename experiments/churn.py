"""Arrivals and departures in numbers: `arrivals:` and `departures:` of an experiment.

They give how many processes of a role come or leave, in which regions, and when: at a rate, spread over a
period, all at once, or each after a lifetime. The seed decides which process acts when
(`experiments.planned.churn_schedule`); the plan holds the concrete changes. A single process uses a
fault instead: join, leave, kill, restart.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal, Self, TypeVar

from pydantic import Field, model_validator

from experiments.declared import Declared, Trait
from topologies.strict import (
    DurationUs,
    EventRatePerS,
    Name,
    StrictModel,
    WholeNumber,
    problem,
    suggestion,
)

COUNT_MAX = 65_000
LEAST_US = 1_000_000
"""Least lifetime and least time away: a process takes some time to start and to end."""
STEP_US = 1_000  # times are whole milliseconds

Group = TypeVar("Group", bound="Churn")
Distribution = Literal["uniform", "poisson", "even", "at-once"]


class RandomDuration(StrictModel):
    """A random duration: exponential with a mean, or uniform between two bounds."""

    mean_us: DurationUs | None = Field(None, gt=0)
    """Mean of an exponential distribution."""
    least_us: DurationUs | None = Field(None, alias="from", gt=0)
    """Lower bound of a uniform distribution."""
    most_us: DurationUs | None = Field(None, alias="to", gt=0)
    """Upper bound of a uniform distribution."""

    @model_validator(mode="after")
    def _one_distribution(self) -> Self:
        bounds = (self.least_us, self.most_us)
        if (self.mean_us is None) == (bounds == (None, None)) or bounds.count(None) == 1:
            raise problem("should have either mean (exponential), or from and to (uniform)")
        if self.least_us is not None and self.most_us is not None and self.least_us > self.most_us:
            raise problem("is more than `to`", "from")
        return self

    def drawn_us(self, rng: Random) -> int:
        """Draw a duration in whole milliseconds, at least one second."""
        if self.mean_us is not None:
            us = rng.expovariate(1 / self.mean_us)
        else:
            us = rng.uniform(self.least_us or 0, self.most_us or 0)
        return max(LEAST_US, round(us / STEP_US) * STEP_US)

    def __str__(self) -> str:
        """Return the text for users: `exponential, 30 s on average`, `5 s to 20 s`."""
        if self.mean_us is not None:
            return f"exponential, {self.mean_us / 1e6:g} s on average"
        return f"{(self.least_us or 0) / 1e6:g} s to {(self.most_us or 0) / 1e6:g} s"


class Churn(StrictModel):
    """The fields that arrivals and departures share: which processes, and when."""

    name: Name = ""
    """Its name in plans and reports; default: `arrivals` or `departures` and a number."""
    role: str
    """The role of the processes."""
    regions: tuple[str, ...] = ()
    """Their regions; default: all."""
    count: WholeNumber | None = Field(None, ge=1, le=COUNT_MAX)
    """The number of events; with a rate the maximum."""
    rate_per_s: EventRatePerS | None = Field(None, gt=0)
    """The rate, with exponential times between events."""
    distribution: Distribution | None = None
    """uniform: at any time between `from` and `to` (default without a rate); even: at equal distances;
    at-once: all at `from`; poisson: at a rate."""
    from_us: DurationUs = 0
    """The earliest time."""
    to_us: DurationUs | None = None
    """The latest time; default: the end of the run."""

    @property
    def kind(self) -> str:
        """`arrivals` or `departures`."""
        return type(self).__name__.lower()

    @property
    def spread(self) -> Distribution:
        """The distribution, given or default."""
        return self.distribution or ("uniform" if self.rate_per_s is None else "poisson")

    @property
    def is_timed(self) -> bool:
        """Whether the group has times of its own instead of lifetimes."""
        return True

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.is_timed and self.count is None and self.rate_per_s is None:
            raise problem(self._lacking)
        if (self.spread == "poisson") != (self.rate_per_s is not None):
            raise problem("poisson and a rate go together", "distribution")
        if self.to_us is not None and self.to_us <= self.from_us:
            raise problem("is not after `from`", "to")
        if self.spread == "at-once" and self.to_us is not None:
            raise problem("has no effect if all come or go at once, at `from`", "to")
        return self

    @property
    def _lacking(self) -> str:
        return "should say how many: count, or rate"

    def problem(self, declared: Declared, duration_us: int) -> tuple[str, str] | None:
        """Return the first problem of the group with a system and a run, as field and text, or None."""
        able = declared.having(Trait.TRANSIENT)
        if self.role not in declared.roles:
            return "role", f"{declared.name} has no such role{suggestion(self.role, declared.roles)}"
        if self.role not in able:
            only = f"only {' and '.join(able)} may" if able else "nor may any other of its roles"
            return "role", f"{self.role} of {declared.name} may not come and go while it runs; {only}"
        if self.from_us >= duration_us:
            return "from", f"is not before the end of the run, {duration_us / 1e6:g} s"
        if self.to_us is not None and self.to_us > duration_us:
            return "to", f"is after the end of the run, {duration_us / 1e6:g} s"
        return None

    def times_us(self, rng: Random, duration_us: int, most: int) -> Sequence[int]:
        """Draw the times of the events, in order, in whole milliseconds. most: the maximum number."""
        until_us = min(self.to_us or duration_us, duration_us - STEP_US)
        count = min(self.count or most, most)
        if self.spread == "poisson":
            return list(self._poisson(rng, until_us, count))
        if self.spread == "at-once":
            return [self.from_us] * count
        width_us = until_us - self.from_us
        if self.spread == "even":
            return [_whole(self.from_us + width_us * number / max(1, count - 1)) for number in range(count)]
        return sorted(_whole(rng.uniform(self.from_us, until_us)) for _ in range(count))

    def _poisson(self, rng: Random, until_us: int, count: int) -> Iterator[int]:
        at_us = float(self.from_us)
        for _ in range(count):
            at_us += rng.expovariate((self.rate_per_s or 1) / 1e6)
            if at_us > until_us:
                return
            yield _whole(at_us)

    def __str__(self) -> str:
        """Return the times for users: `poisson, 2/s`."""
        rate = f", {self.rate_per_s:g}/s" if self.rate_per_s is not None else ""
        return f"{self.spread}{rate}"


class Arrivals(Churn):
    """Processes of `roles` that are absent at the start and come later."""


class Departures(Churn):
    """Processes that leave, permanently or for a while."""

    how: Literal["leave", "crash"] = "leave"
    """leave: each ends in an orderly way. crash: it is killed."""
    lifetime: RandomDuration | None = None
    """The lifetime of each from its start, instead of times (of `count` processes; default: of all)."""
    away: RandomDuration | None = None
    """The time until it is restarted; default: never."""

    @property
    def is_timed(self) -> bool:
        """Whether the group has no lifetimes."""
        return self.lifetime is None

    @property
    def may_go_again(self) -> bool:
        """Whether there may be more departures than processes."""
        return self.away is not None and self.lifetime is None

    @property
    def _lacking(self) -> str:
        return "should say how many: count, rate, or a lifetime"

    @model_validator(mode="after")
    def _lifetimes_have_no_times(self) -> Self:
        if self.lifetime is not None and (self.distribution is not None or self.rate_per_s is not None):
            given = "rate" if self.rate_per_s is not None else "distribution"
            raise problem("has no effect if each has a lifetime", given)
        return self

    def __str__(self) -> str:
        """Return times or lifetimes for users, with how processes leave."""
        when = super().__str__() if self.lifetime is None else f"lifetime {self.lifetime}"
        return f"{when}, by {self.how}" + (f"; away {self.away}" if self.away is not None else "")


def with_names(churn: Sequence[Group]) -> tuple[Group, ...]:
    """Give each group a name: its own, or its kind, numbered if there are several."""
    return tuple(
        each.model_copy(
            update={"name": each.name or (each.kind if len(churn) == 1 else f"{each.kind}-{number}")}
        )
        for number, each in enumerate(churn, 1)
    )


def _whole(us: float) -> int:
    return round(us / STEP_US) * STEP_US
