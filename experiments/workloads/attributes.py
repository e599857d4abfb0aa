"""The attributes of events, as users write them: names, types, bounds and distributions of values."""

from math import inf, isfinite
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from experiments.workloads.workload import SKEW_MAX
from node.core.content import content
from node.core.ordinals import LENGTH_MAX
from topologies.quantities import number_hint
from topologies.strict import Fraction, Name, StrictModel, WholeNumber, problem, problems_under

PARTS_MAX = 100_000
LABELS_MAX = 10_000
LABEL_LENGTH_MAX = 60
WHOLE_MAX = float(1 << 53)
"""Largest whole number up to which all are exact as doubles."""


def _bound(given: Any) -> float | str:
    if isinstance(given, str):
        return given
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise problem(f"should be a number, a word or a date, not {given!r:.40}")
    try:
        value = float(given)
    except OverflowError:
        value = inf
    if not isfinite(value):
        raise problem(f"should be a number that a double can hold, not {given!r:.40}")
    if value != given:
        raise problem(f"is {given!r:.40}, but not all integers beyond {WHOLE_MAX:.0f} are exact")
    return value


Value = Annotated[
    float | str,
    BeforeValidator(_bound),
    WithJsonSchema({"type": ["number", "string"], "examples": [10, "aapl", "2002-12-31"]}),
]
"""A value of an attribute: a number, a word, or a date such as 2002-12-31."""
Label = Annotated[str, Field(min_length=1, max_length=LABEL_LENGTH_MAX)]


class ValueDistribution(StrictModel):
    """A distribution of values."""

    distribution: Literal["uniform", "zipf"] = "zipf"
    """uniform: all with equal probability. zipf: the k-th most popular part in proportion to 1 / k^skew."""
    skew: float = Field(1.0, gt=0, le=SKEW_MAX, strict=True)
    """The exponent of zipf."""
    parts: WholeNumber = Field(1000, ge=1, le=PARTS_MAX)
    """The number of equal parts of the range; within a part all values have equal probability."""
    peak: Value | None = None
    """The most popular value; popularity falls with the distance from it. Default: the lowest value."""

    def as_plan(self, attribute: content.ContentAttribute) -> dict[str, Any]:
        """Return the plan's form. Raises a problem if the peak is not a value of the attribute."""
        peak = None if self.peak is None else number(self.peak, attribute, "peak")
        return {"kind": self.distribution, "skew": self.skew, "parts": self.parts, "peak": peak}


class SubscriptionDistribution(ValueDistribution):
    """The distribution of the values in subscriptions."""

    distribution: Literal["uniform", "zipf", "events"] = "zipf"  # type: ignore[assignment]
    """Also events: the value of an event of the stream, the same event for all such attributes."""


class WorkloadAttribute(StrictModel):
    """An attribute of events."""

    name: Name
    """Its name in templates."""
    type: Literal["real", "integer", "string", "date"] = "real"
    """The type of its values."""
    min: Value | None = None
    """The lowest value; default: 0 or a."""
    max: Value | None = None
    """The highest value."""
    values: Annotated[tuple[Label, ...], Field(min_length=2, max_length=LABELS_MAX)] | None = None
    """The possible strings in order, instead of all words from min to max."""
    unspecified: Fraction = 0.0
    """The share of events without this attribute."""
    drawn: ValueDistribution | None = None
    """The distribution of values in events; default: uniform."""
    wanted: SubscriptionDistribution | None = None
    """The distribution of values in subscriptions; default: uniform."""

    @model_validator(mode="after")
    def _some_values(self) -> Self:
        attribute = self.core()
        if attribute.high <= attribute.low:
            raise problem(f"should be more than min, {attribute.shown(attribute.low)}", "max")
        if attribute.is_whole and max(-attribute.low, attribute.high) > WHOLE_MAX:
            raise problem(f"has a bound beyond {WHOLE_MAX:.0f}, from where not all integers are exact")
        if self.unspecified >= 1:
            raise problem("leaves it out of all events: write less, or remove the attribute", "unspecified")
        for name, distribution in (("drawn", self.drawn), ("wanted", self.wanted)):
            with problems_under(name):
                if distribution is not None:
                    distribution.as_plan(attribute)
        return self

    def core(self) -> content.ContentAttribute:
        """Return the attribute as nodes know it. Raises a problem if its bounds are invalid."""
        if self.values is not None:
            return self._labelled(self.values)
        if self.max is None:
            raise problem("is missing", "max")
        low, high = ("a" if self.type == "string" else 0.0) if self.min is None else self.min, self.max
        if self.type == "date" and self.min is None:
            raise problem("is missing", "min")
        if self.type == "string":
            length = max(len(str(low)), len(str(high)))
            if length > LENGTH_MAX:
                raise problem(f"has more than {LENGTH_MAX} letters; values: [...] lists other strings")
            widest = content.ContentAttribute(self.name, self.type, 0.0, float("inf"), length)
        else:
            widest = content.ContentAttribute(self.name, self.type, float("-inf"), float("inf"))
        ends = (number(low, widest, "min"), number(high, widest, "max"))
        return content.ContentAttribute(self.name, self.type, *ends, length=widest.length)

    def _labelled(self, labels: tuple[str, ...]) -> content.ContentAttribute:
        if self.type != "string":
            raise problem(f"are for type: string, not {self.type}", "values")
        if self.min is not None or self.max is not None:
            raise problem("cannot be combined with min and max: remove one of them", "values")
        if twice := next((each for place, each in enumerate(labels) if each in labels[:place]), None):
            raise problem(f"has {twice!r} twice", "values")
        return content.ContentAttribute(self.name, self.type, 0.0, len(labels) - 1.0, labels=labels)

    def as_plan(self) -> dict[str, Any]:
        """Return {"name", "kind", "low", "high"} and, if given, "length", "labels", "unspecified", "drawn"
        and "wanted".
        """
        attribute = self.core()
        more: dict[str, Any] = {
            "length": attribute.length,
            "labels": attribute.labels,
            "unspecified": self.unspecified,
            "drawn": self.drawn and self.drawn.as_plan(attribute),
            "wanted": self.wanted and self.wanted.as_plan(attribute),
        }
        plain = {"name": self.name, "kind": self.type, "low": attribute.low, "high": attribute.high}
        return plain | {name: value for name, value in more.items() if value}


def number(value: float | str, attribute: content.ContentAttribute, *path: str | int) -> float:
    """Return the value as a number. Raises a problem at `path` if the attribute has no such value."""
    is_text = attribute.kind in {"string", "date"}
    if isinstance(value, str) != is_text:
        hint = "" if is_text else number_hint(value, is_whole=attribute.is_whole)
        noun = content.NOUNS[attribute.kind]
        raise problem(f"should be {noun}, not {value!r:.40}{hint}", *path)
    try:
        return attribute.number(value if isinstance(value, str) else repr(value).removesuffix(".0"))
    except ValueError as error:
        raise problem(str(error), *path) from None
