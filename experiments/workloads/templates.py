"""Templates of subscriptions, as users write them: the wanted ranges of each attribute."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from experiments.workloads.attributes import Value, number
from node.core.content import content
from topologies.quantities import FRACTION
from topologies.strict import Fraction, Name, StrictModel, problem, problems_under

ATTRIBUTES_MAX = 100
RANGES_MAX = 10
COMBINATIONS_MAX = 100
WEIGHT_MAX = 1e9
WORDS = ("equal", "between", "below", "above")


class Range(StrictModel):
    """A range that is the same in all subscriptions of a template."""

    value: Value | None = None
    """A single value, instead of min and max."""
    min: Value | None = None
    """The lowest value; default: no lower limit."""
    max: Value | None = None
    """The highest value; default: no upper limit."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if (self.value is None) == (self.min is None and self.max is None):
            raise problem("should have a value, or min, max or both")
        return self

    def as_plan(self, attribute: content.ContentAttribute) -> dict[str, Any]:
        """Return a predicate on the attribute. Raises a problem if it has no such values."""
        if self.value is not None:
            low = high = number(self.value, attribute, "value")
        else:
            low = attribute.low if self.min is None else number(self.min, attribute, "min")
            high = attribute.high if self.max is None else number(self.max, attribute, "max")
        if high < low:
            raise problem("should not be less than min", "max")
        return {"kind": "fixed", "low": low, "high": high}


def _kind_of(given: Any) -> str:
    if isinstance(given, list | tuple):
        return "<several>"
    if isinstance(given, dict | Range):
        return "<range>"
    return "<word>" if given in WORDS else "<share>"


def _known(given: Any) -> Any:
    if isinstance(given, str) and given not in WORDS and not given.strip().endswith("%"):
        raise problem(
            f"should be a share such as {FRACTION.example}, or {', '.join(WORDS)}, or a mapping such as"
            f" {{min: 10, max: 30}}, not {given!r:.40}"
        )
    return given


One = (
    Annotated[Literal["equal", "between", "below", "above"], Tag("<word>")]
    | Annotated[Fraction, Tag("<share>")]
    | Annotated[Range, Tag("<range>")]
)
Several = Annotated[
    tuple[Annotated[One, Discriminator(_kind_of), BeforeValidator(_known)], ...],
    Field(min_length=1, max_length=RANGES_MAX),
]
Wish = Annotated[One | Annotated[Several, Tag("<several>")], Discriminator(_kind_of), BeforeValidator(_known)]
"""The wanted values of an attribute: a share of all values, such as 10%; equal: one value; below, above: up
to or from a value; between: from one value to another; a range; or a list of these.
"""


class Template(StrictModel):
    """A template of subscriptions."""

    weight: float = Field(1.0, gt=0, le=WEIGHT_MAX)
    """Its frequency relative to the others."""
    ranges: dict[Name, Wish] = Field(max_length=ATTRIBUTES_MAX)
    """The wanted values of each attribute: 10% of all values, equal, between, below, above, {min: 10, max:
    30}, or several of these; all values of attributes that are not named."""

    @model_validator(mode="after")
    def _not_too_many(self) -> Self:
        combinations = 1
        for wish in self.ranges.values():
            combinations *= len(wish) if isinstance(wish, tuple) else 1
        if combinations > COMBINATIONS_MAX:
            raise problem(f"makes {combinations} subscriptions of one: {COMBINATIONS_MAX} at most", "ranges")
        return self

    def as_plan(self, attributes: dict[str, content.ContentAttribute]) -> dict[str, Any]:
        """Return {"weight", "ranges": {attribute: [predicate]}}, see `node.core.content.subscription_draws`.

        Raises a problem if a range has values that its attribute does not have.
        """
        ranges = {}
        for name, wish in self.ranges.items():
            several = wish if isinstance(wish, tuple) else (wish,)
            with problems_under("ranges", name):
                ranges[name] = [_predicate(each, attributes[name]) for each in several]
        return {"weight": self.weight, "ranges": ranges}


def _predicate(wish: str | float | Range, attribute: content.ContentAttribute) -> dict[str, Any]:
    if isinstance(wish, str):
        return {"kind": wish}
    if isinstance(wish, Range):
        return wish.as_plan(attribute)
    if not wish:
        raise problem("selects no value: write more than 0%, or equal for one value")
    return {"kind": "share", "share": wish}
