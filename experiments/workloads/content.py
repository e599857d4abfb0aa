"""Events with attributes, for subscribers to ranges of their values.

Subscriptions are drawn from templates: the attributes they name and the ranges of each. A template is as
frequent as its weight. Ranges and values are drawn uniformly, by Zipf's law, or from a stream of events:
stock quotes, or rows of a user's file. A subscriber's subscriptions depend only on the run's seed and its
name. `node.core` draws: publishers and studies need only the plan.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from math import ceil
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from experiments.workloads.attributes import WorkloadAttribute
from experiments.workloads.templates import ATTRIBUTES_MAX, Template
from experiments.workloads.workload import (
    RATE_PER_S_MAX,
    SKEW_MAX,
    SubscriptionTimes,
    Workload,
    WorkloadStream,
)
from node.core.content import content
from node.core.specification import PlannedSubscription
from topologies.document import FieldPath, shown_path
from topologies.errors import InputError
from topologies.strict import (
    EventRatePerS,
    Name,
    StrictModel,
    WholeNumber,
    problem,
    problems_under,
    suggestion,
)

if TYPE_CHECKING:
    from node.core.content.value_distributions import Floats

TEMPLATES_MAX = 100
EACH_MAX = 10_000
STOCKS_MAX = 10_000
VALUE_BYTES = 8
"""Size of an attribute in an event, if a system encodes it as a double."""
ROWS_TEXT_MAX = 6 << 20
"""Limit of the rows sent to one publisher."""
US_PER_S = 1_000_000


class ContentSubscriptions(SubscriptionTimes):
    """The subscriptions of subscribers."""

    each: WholeNumber = Field(1, ge=1, le=EACH_MAX)
    """The number of subscriptions per subscriber; several ranges of an attribute count as one."""
    templates: tuple[Template, ...] = Field((), max_length=TEMPLATES_MAX)
    """The templates; default: the preset's."""


class EventSourceSettings(StrictModel):
    """The source of events, unless they are drawn from the attributes' distributions."""

    file: Annotated[str, Field(max_length=4096)] | None = None
    """A CSV or Parquet file with rows, relative to this file; after the last row it starts again."""
    columns: dict[Name, str] = Field(default_factory=dict, max_length=ATTRIBUTES_MAX)
    """The columns of attributes whose column has another name."""
    stocks: WholeNumber | None = Field(None, ge=1, le=STOCKS_MAX)
    """The number of stocks in a preset's quotes; default: 100."""
    skew: float | None = Field(None, gt=0, le=SKEW_MAX, strict=True)
    """The Zipf exponent of the stocks' popularity with subscribers and of their volumes; default: 1."""
    seed: WholeNumber | None = Field(None, ge=0)
    """The seed of the quotes, which do not depend on the run's seed; default: 1."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.columns and self.file is None:
            raise problem("are set, but there is no file", "columns")
        if self.columns and len(set(self.columns.values())) < len(self.columns):
            raise problem("gives two attributes the same column", "columns")
        if self.file is not None and self.quotes:
            raise problem("cannot be combined with quotes of stocks: remove one of the two", "file")
        return self

    @property
    def quotes(self) -> dict[str, Any]:
        """The options of the quotes that are set."""
        asked = {"stocks": self.stocks, "skew": self.skew, "seed": self.seed}
        return {name: value for name, value in asked.items() if value is not None}


class ContentWorkload(Workload):
    """A workload whose subscribers select events by content."""

    kind: Literal["content"]
    """The kind: events with values, for subscribers whose subscriptions match."""
    preset: Literal["stock-quotes", "stock-quotes-uniform"] | None = None
    """Attributes and templates of Meghdoot's evaluation, with its events or with uniform ones."""
    attributes: tuple[WorkloadAttribute, ...] = Field((), max_length=ATTRIBUTES_MAX)
    """The attributes of events; default: the preset's."""
    events: EventSourceSettings = Field(default_factory=lambda: EventSourceSettings.model_validate({}))
    """The source of events; default: drawn from the attributes' distributions."""
    rate_per_s: EventRatePerS = Field(gt=0, le=RATE_PER_S_MAX)
    """Events per second of each publisher."""
    subscriptions_: ContentSubscriptions = Field(alias="subscriptions")
    """The subscriptions and their times."""

    @property
    def is_changing(self) -> bool:
        """Whether subscriptions change during the run."""
        return self.subscriptions_.change_us is not None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self._check_preset()
        given = [each.name for each in self.attributes]
        for place, name in enumerate(given):
            if name in given[:place]:
                raise problem(f"the name {name} is taken", "attributes", place, "name")
        names = [each["name"] for each in self.described["attributes"]]
        for name in self.events.columns:
            if name not in names:
                raise problem(
                    f"there is no such attribute{suggestion(name, names)}", "events", "columns", name
                )
        if self.event_size_bytes < VALUE_BYTES * len(names):
            least = VALUE_BYTES * len(names)
            raise problem(f"is less than {len(names)} values need, {least} B", "event_size")
        return self

    def _check_preset(self) -> None:
        if self.preset is None:
            for path, given in (
                (("attributes",), self.attributes),
                (("subscriptions", "templates"), self.subscriptions_.templates),
            ):
                if not given:
                    raise problem("is missing: list them, or use a preset such as stock-quotes", *path)
            if self.events.quotes:
                raise problem("has quotes of stocks, which need preset: stock-quotes", "events")
        elif self.attributes:
            raise problem("cannot be combined with a preset, which has its own", "attributes")

    @cached_property
    def described(self) -> Mapping[str, Any]:
        """{"attributes", "events", "templates"} as nodes receive them. Raises a problem."""
        if self.preset is None:
            given: dict[str, Any] = {
                "attributes": [each.as_plan() for each in self.attributes],
                "events": {"source": "drawn"},
            }
        else:
            from node.core.content import stock_quotes

            uniform = self.preset == "stock-quotes-uniform"
            given = stock_quotes.workload(uniform=uniform, **self.events.quotes)
        if self.events.file is not None:
            given["events"] = {"source": "rows"}
        if self.subscriptions_.templates:
            attributes = {each.name: each for each in content.attributes_of(given)}
            given["templates"] = list(self._templates(attributes))
        return given

    def _templates(self, attributes: dict[str, content.ContentAttribute]) -> Iterator[dict[str, Any]]:
        for place, template in enumerate(self.subscriptions_.templates):
            with problems_under("subscriptions", "templates", place):
                for name in template.ranges:
                    if name not in attributes:
                        raise problem(
                            f"there is no such attribute{suggestion(name, attributes)}", "ranges", name
                        )
                yield template.as_plan(attributes)

    def as_plan(self) -> dict[str, Any]:
        """Return {"kind", "attributes", "events", "templates", "event_size_bytes", "rate_per_s"}.

        Subscribers receive their subscriptions separately, publishers their rows.
        """
        return {
            "kind": self.kind,
            **self.described,
            "event_size_bytes": self.event_size_bytes,
            "rate_per_s": self.rate_per_s,
            "closed_loop": False,
        }

    def streams_in(self, regions: Sequence[str]) -> tuple[WorkloadStream, ...]:
        """Return one stream per region."""
        return tuple(WorkloadStream(region=region) for region in regions)

    def subscriptions(
        self, subscribers: Sequence[str], duration_us: int, seed: int
    ) -> Mapping[str, tuple[PlannedSubscription, ...]]:
        """Return the subscriptions of each subscriber, numbered per subscriber: see
        `Workload.subscriptions`.
        """
        import numpy as np

        from node.core.content.event_values import EventValues
        from node.core.content.subscription_draws import SubscriptionDraws

        asking = self.subscriptions_
        asking.refuse_too_many(duration_us)
        rows = self._rows()
        draws = SubscriptionDraws(self.described, EventValues(self.described, seed, rows=rows))
        found = {}
        for name in subscribers:
            who = f"subscriptions {seed} {name}"
            rng = Random(who)  # noqa: S311  reproducible, not secret
            begin_us, changes_us = asking.times(duration_us, rng)
            times_us = [begin_us] * asking.each + list(changes_us)
            generator = np.random.default_rng(int.from_bytes(blake2b(who.encode(), digest_size=8).digest()))
            wishes = draws.draw(len(times_us), generator).by_wish()
            found[name] = tuple(_with_ends(_numbered(times_us, wishes), asking.each, rng))
        return found

    def problems(self, streams: int, duration_us: int) -> Iterator[tuple[FieldPath, str]]:
        """Yield each problem of the workload with the run or the file: see `Workload.problems`."""
        yield from self.subscriptions_.problems(duration_us)
        try:
            self.rows(streams, duration_us)
        except InputError as error:
            yield ("events", "file"), str(error)

    def rows(self, streams: int, duration_us: int) -> Sequence[str]:
        """Return the rows of each stream: every n-th of n streams, as many as it can publish."""
        rows = self._rows()
        if rows is None:
            return ()
        from node.core.content.event_values import packed

        most = ceil(self.rate_per_s * duration_us / US_PER_S) + 1
        found = [packed(rows[stream::streams][:most]) for stream in range(streams)]
        if len(rows) < streams:
            raise self._file_error(f"has {len(rows)} rows, fewer than there are streams, {streams}")
        if max(map(len, found)) > ROWS_TEXT_MAX:
            raise self._file_error(
                f"gives a publisher more than {ROWS_TEXT_MAX >> 20} MiB: lower the rate or the duration"
            )
        return found

    def _file_error(self, message: str) -> InputError:
        return InputError(shown_path(Path(str(self.events.file))), None, "", message)

    def _rows(self) -> "Floats | None":
        """Read the file's rows, or return None without a file. Raises InputError."""
        if self.events.file is None:
            return None
        from experiments.workloads.event_rows import columns_of, read_rows

        attributes = content.attributes_of(self.described)
        return read_rows(Path(self.events.file), columns_of(attributes, self.events.columns))


def _numbered(
    times_us: Sequence[int], wishes: Sequence[Sequence[tuple[content.Range, ...]]]
) -> list[list[PlannedSubscription]]:
    """Return the subscriptions of each wish."""
    number, found = 0, []
    for at_us, wish in zip(times_us, wishes, strict=True):
        found.append([PlannedSubscription(at_us, number + n, ranges=ranges) for n, ranges in enumerate(wish)])
        number += len(wish)
    return found


def _with_ends(
    wishes: Sequence[Sequence[PlannedSubscription]], each: int, rng: Random
) -> Iterator[PlannedSubscription]:
    """Yield the subscriptions; each later wish replaces an earlier one, which ends."""
    now = list(wishes[:each])
    for wish in now:
        yield from wish
    for new in wishes[each:]:
        for old in now.pop(rng.randrange(each)):
            yield PlannedSubscription(new[0].at_us, old.number, False, old.ranges)
        now.append(new)
        yield from new
