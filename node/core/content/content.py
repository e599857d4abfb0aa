"""Events by their content: attributes with values, and subscriptions to ranges of them (Meghdoot 3.1-3.4).

How they are represented, everywhere behind the plan:

- a value is a number, a float that is whole where the attribute's kind is not "real". Strings and dates are
  ordinals (`node.core.ordinals`); `Attribute.number` and `Attribute.text` translate;
- an event is a value of each attribute, in their order; `UNSPECIFIED`, a NaN, where it says nothing of one;
- a subscription is a range of each attribute, (lowest, highest), both included: equality is (v, v), a
  one-sided range ends where the attribute does, and one that is left out is (attribute.low, attribute.high).
  Several ranges of one attribute are several subscriptions;
- an event that leaves an attribute out stands for all its values at once: it matches who wants them all. So
  an event is a range of each attribute, too (`event_ranges`), c_i1 and c_i2 in the paper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, Literal

from node.core import ordinals

UNSPECIFIED = nan
"""The value of what an event leaves out."""
DIGITS = 8
"""Of a real number that is shown."""

Kind = Literal["real", "integer", "string", "date"]
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Attribute:
    """What events have a value of. Values lie between low and high, both possible. length: of the longest
    string; labels: the strings that there are, in order, where these are not all words up to a length.
    """

    name: str
    kind: Kind
    low: float
    high: float
    length: int = 0
    labels: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether its values are whole numbers."""
        return self.kind != "real"

    def number(self, text: str) -> float:
        """The value of what people write. Raises ValueError if it is none of this attribute's."""
        value = self._number(text)
        if not self.low <= value <= self.high:
            raise ValueError(f"{text!r:.40} is not from {self.shown(self.low)} to {self.shown(self.high)}")
        return value

    def text(self, value: float) -> str:
        """A value as people write it; "" for what is unspecified."""
        if isnan(value):
            return ""
        if self.kind == "date":
            return ordinals.date_of(int(value))
        if self.labels:
            return self.labels[int(value)]
        if self.kind == "string":
            return ordinals.word_of(int(value), self.length)
        return f"{value:.{DIGITS}g}" if self.kind == "real" else f"{value:.0f}"

    def shown(self, value: float) -> str:
        """The value within a line for people: the empty word has to be seen."""
        return self.text(value) or '""'

    def _number(self, text: str) -> float:
        if self.kind == "string" and self.labels:
            if text not in self.labels:
                raise ValueError(f"{text!r:.40} is none of its {len(self.labels)} values")
            return self.labels.index(text)
        if self.kind == "string":
            try:
                return ordinals.of_word(text.lower(), self.length)
            except ValueError:
                raise ValueError(f"{text!r:.40} is no word of at most {self.length} letters a to z") from None
        try:
            value = float(ordinals.of_date(text) if self.kind == "date" else text)
        except ValueError:
            raise ValueError(f"{text!r:.40} is no {NOUNS[self.kind]}") from None
        if self.kind == "integer" and not value.is_integer():
            raise ValueError(f"{text!r:.40} is no {NOUNS[self.kind]}")
        return value


NOUNS = {"real": "number", "integer": "integer", "date": "date such as 2002-12-31", "string": "word"}


def attributes_of(workload: Mapping[str, Any]) -> tuple[Attribute, ...]:
    """The attributes of a plan's workload, in their order; none if it is of another kind."""
    return tuple(
        Attribute(
            each["name"],
            each["kind"],
            each["low"],
            each["high"],
            each.get("length", 0),
            tuple(each.get("labels", ())),
        )
        for each in workload.get("attributes", ())
    )


def event_ranges(attributes: Sequence[Attribute], values: Sequence[float]) -> tuple[Range, ...]:
    """An event as ranges: (v, v) of each value, all of what is unspecified."""
    return tuple(
        (each.low, each.high) if isnan(value) else (value, value)
        for each, value in zip(attributes, values, strict=True)
    )


def matches(ranges: Sequence[Range], event: Sequence[Range]) -> bool:
    """Whether each range of a subscription holds that of an event (`event_ranges`), bounds included."""
    return all(
        low <= first and last <= high for (low, high), (first, last) in zip(ranges, event, strict=True)
    )
