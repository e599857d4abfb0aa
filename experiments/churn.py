"""Arrivals and departures in numbers: `arrivals:` and `departures:` of an experiment.

How many processes of a role come or go, in which regions, and when: at a rate, spread over a time, all at
once, or each after a lifetime. Which process does what and when follows from the seed
(`experiments.planned.churn_schedule`), as concrete changes in the plan. One
process alone is a fault: join, leave, kill, restart.
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
"""Of a lifetime and of a time away: a process takes some time to start and to end."""
STEP_US = 1_000  # times are whole milliseconds

Group = TypeVar("Group", bound="Churn")
Distribution = Literal["uniform", "poisson", "even", "at-once"]


class Span(StrictModel):
    """How long something lasts, by chance: exponential with a mean, or uniform between two bounds."""

    mean_us: DurationUs | None = Field(None, gt=0)
    """Of an exponential distribution."""
    least_us: DurationUs | None = Field(None, alias="from", gt=0)
    """Of a uniform one: at least so long."""
    most_us: DurationUs | None = Field(None, alias="to", gt=0)
    """Of a uniform one: at most so long."""

    @model_validator(mode="after")
    def _one_distribution(self) -> Self:
        bounds = (self.least_us, self.most_us)
        if (self.mean_us is None) == (bounds == (None, None)) or bounds.count(None) == 1:
            raise problem("should have either mean (exponential), or from and to (uniform)")
        if self.least_us is not None and self.most_us is not None and self.least_us > self.most_us:
            raise problem("is more than `to`", "from")
        return self

    def drawn_us(self, rng: Random) -> int:
        """One of them, in whole milliseconds; at least a second."""
        if self.mean_us is not None:
            us = rng.expovariate(1 / self.mean_us)
        else:
            us = rng.uniform(self.least_us or 0, self.most_us or 0)
        return max(LEAST_US, round(us / STEP_US) * STEP_US)

    def __str__(self) -> str:
        """`exponential, 30 s on average`, `5 s to 20 s`."""
        if self.mean_us is not None:
            return f"exponential, {self.mean_us / 1e6:g} s on average"
        return f"{(self.least_us or 0) / 1e6:g} s to {(self.most_us or 0) / 1e6:g} s"


class Churn(StrictModel):
    """What arrivals and departures have in common: who, and when."""

    name: Name = ""
    """Its name in plans and reports; `arrivals` or `departures` and a number unless given."""
    role: str
    """The role of the processes."""
    regions: tuple[str, ...] = ()
    """Their regions; all unless given."""
    count: WholeNumber | None = Field(None, ge=1, le=COUNT_MAX)
    """How many; with a rate at most so many."""
    rate_per_s: EventRatePerS | None = Field(None, gt=0)
    """How many a second, with exponential times in between."""
    distribution: Distribution | None = None
    """uniform: at any time between `from` and `to` (unless there is a rate); even: at equal distances;
    at-once: all at `from`; poisson: at a rate."""
    from_us: DurationUs = 0
    """None before this time of the run."""
    to_us: DurationUs | None = None
    """None after this time; the end of the run unless given."""

    @property
    def kind(self) -> str:
        """`arrivals` or `departures`."""
        return type(self).__name__.lower()

    @property
    def spread(self) -> Distribution:
        """The distribution, also where it follows from the rest."""
        return self.distribution or ("uniform" if self.rate_per_s is None else "poisson")

    @property
    def is_timed(self) -> bool:
        """Whether times are drawn for all together."""
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
            raise problem("has no meaning where all come or go at once, at `from`", "to")
        return self

    @property
    def _lacking(self) -> str:
        return "should say how many: count, or rate"

    def problem(self, declared: Declared, duration_us: int) -> tuple[str, str] | None:
        """What is wrong with it for a system and a run: the field, and what; or None."""
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
        """When they come or go, in order: whole milliseconds. most: no more than so many."""
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
        """When, for people: `poisson, 2/s`."""
        rate = f", {self.rate_per_s:g}/s" if self.rate_per_s is not None else ""
        return f"{self.spread}{rate}"


class Arrivals(Churn):
    """Processes that are not there from the beginning: of those that `roles` gives, so many come later."""


class Departures(Churn):
    """Processes that go, for good or for a while."""

    how: Literal["leave", "crash"] = "leave"
    """leave: each ends by itself, tidily. crash: it is killed."""
    lifetime: Span | None = None
    """How long each lives from its start on (`count`: of so many; of all unless given), instead of times."""
    away: Span | None = None
    """After how long it is started again; for good unless given."""

    @property
    def is_timed(self) -> bool:
        """See `Churn`."""
        return self.lifetime is None

    @property
    def may_go_again(self) -> bool:
        """Whether more may go than there are processes."""
        return self.away is not None and self.lifetime is None

    @property
    def _lacking(self) -> str:
        return "should say how many: count, rate, or a lifetime"

    @model_validator(mode="after")
    def _lifetimes_have_no_times(self) -> Self:
        if self.lifetime is not None and (self.distribution is not None or self.rate_per_s is not None):
            given = "rate" if self.rate_per_s is not None else "distribution"
            raise problem("has no meaning where each has a lifetime", given)
        return self

    def __str__(self) -> str:
        """See `Churn`."""
        when = super().__str__() if self.lifetime is None else f"lifetime {self.lifetime}"
        return f"{when}, by {self.how}" + (f"; away {self.away}" if self.away is not None else "")


def named(churn: Sequence[Group]) -> tuple[Group, ...]:
    """Each with a name: given, or its kind, and its number if there are several."""
    return tuple(
        each.model_copy(
            update={"name": each.name or (each.kind if len(churn) == 1 else f"{each.kind}-{number}")}
        )
        for number, each in enumerate(churn, 1)
    )


def _whole(us: float) -> int:
    return round(us / STEP_US) * STEP_US
