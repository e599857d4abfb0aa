"""Events with content: attributes with values, and subscriptions to ranges of them (Meghdoot 3.1-3.4).

Representation, everywhere except in the plan:

- a value is a float, which is a whole number unless the attribute's kind is "real". Strings and dates are
  ordinals (`node.core.ordinals`); `ContentAttribute.number` and `ContentAttribute.text` translate;
- an event is one value for each attribute, in their order; an unspecified value is `UNSPECIFIED`, a NaN;
- a subscription is one range for each attribute, (lowest, highest), bounds included: equality is (v, v), a
  one-sided range ends at the attribute's bound, and an attribute without a condition has the range
  (attribute.low, attribute.high). Several ranges of one attribute are several subscriptions;
- an event that leaves an attribute unspecified has all its values at once: it matches only subscriptions to
  the attribute's whole range. So an event, too, is a range for each attribute (`event_ranges`), c_i1 and
  c_i2 in the paper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, Literal

from node.core import ordinals

UNSPECIFIED = nan
"""The value of an attribute that an event leaves unspecified."""
DIGITS = 8
"""Significant digits of a real number as text."""

Kind = Literal["real", "integer", "string", "date"]
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ContentAttribute:
    """An attribute of events. Values lie between low and high, both included. length: of the longest string;
    labels: the possible strings in order, unless all words up to a length are possible.
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
        """Parse a value as users write it. Raises ValueError if it is not a value of this attribute."""
        value = self._number(text)
        if not self.low <= value <= self.high:
            raise ValueError(f"{text!r:.40} is not from {self.shown(self.low)} to {self.shown(self.high)}")
        return value

    def text(self, value: float) -> str:
        """Format a value as users write it; "" if it is unspecified."""
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
        """Format a value for messages to users; the empty word is shown as `""`."""
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
                raise ValueError(
                    f"{text!r:.40} is not a word of at most {self.length} letters a to z"
                ) from None
        try:
            value = float(ordinals.of_date(text) if self.kind == "date" else text)
        except ValueError:
            raise ValueError(f"{text!r:.40} is not {NOUNS[self.kind]}") from None
        if self.kind == "integer" and not value.is_integer():
            raise ValueError(f"{text!r:.40} is not {NOUNS[self.kind]}")
        return value


NOUNS = {"real": "a number", "integer": "an integer", "date": "a date such as 2002-12-31", "string": "a word"}


def attributes_of(workload: Mapping[str, Any]) -> tuple[ContentAttribute, ...]:
    """Return the attributes of a plan's workload, in order; none for other kinds of workload."""
    return tuple(
        ContentAttribute(
            each["name"],
            each["kind"],
            each["low"],
            each["high"],
            each.get("length", 0),
            tuple(each.get("labels", ())),
        )
        for each in workload.get("attributes", ())
    )


def event_ranges(attributes: Sequence[ContentAttribute], values: Sequence[float]) -> tuple[Range, ...]:
    """Return an event as ranges: (v, v) for each value, the whole range for each unspecified one."""
    return tuple(
        (each.low, each.high) if isnan(value) else (value, value)
        for each, value in zip(attributes, values, strict=True)
    )


def matches(ranges: Sequence[Range], event: Sequence[Range]) -> bool:
    """Return whether each range of a subscription contains that of an event (`event_ranges`), bounds
    included.
    """
    return all(
        low <= first and last <= high for (low, high), (first, last) in zip(ranges, event, strict=True)
    )
