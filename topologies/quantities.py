"""Quantities as users write them (`15ms`, `10gbit`, `10B`, `20000/s`, `1%`), to whole base units and back.

The units are those of `tc`, without the ambiguous ones. A number without a unit is refused. Each quantity has
the suffix of the names of its fields (`delay_us`), and `yaml_name` gives the name that users write (`delay`).
Arithmetic is decimal, so that `format` returns the written value unchanged.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import isfinite, nan

WRITTEN = re.compile(r"([+-]?)(\d+(?:\.\d+)?) ?([A-Za-zµ%/]+)", re.ASCII)
LONGEST_TEXT = 40
LARGEST = 10**15  # in any base unit: keeps every later product within 64 bits or exact floats


class QuantityError(ValueError):
    """A quantity that cannot be read; the message says how to write it."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A kind of quantity.

    noun: its name in messages, with its article.
    suffix: the ending of the names of fields that hold it.
    units: size of each unit in base units, the smallest first.
    example: an example that can be copied.
    whole: whether values are whole numbers of base units.
    refused: units that users may expect, and why they are refused.
    read_only: units that `format` does not use.
    signed: whether values may be negative.
    """

    noun: str
    suffix: str
    units: Mapping[str, Decimal]
    example: str
    whole: bool = True
    refused: Mapping[str, str] = field(default_factory=dict)
    read_only: frozenset[str] = frozenset()
    signed: bool = False

    def parse(self, text: object) -> int | float:
        """Return the value in base units. Raises QuantityError."""
        if isinstance(text, (int, float)) and not isinstance(text, bool):
            raise QuantityError(f"{text} has no unit: write {self.noun} such as {self.example}")
        match = (
            WRITTEN.fullmatch(text.strip()) if isinstance(text, str) and len(text) <= LONGEST_TEXT else None
        )
        if match is None or (match[1] and not self.signed):
            raise QuantityError(f"{_shown(text)} is not {self.noun}: write one such as {self.example}")
        value = Decimal(match[1] + match[2]) * self._unit(match[3])
        if abs(value) > LARGEST:
            raise QuantityError(f"{text} is too large")
        if value == value.to_integral_value():
            return int(value)
        if self.whole:
            raise QuantityError(f"{text} is finer than the smallest step, 1{next(iter(self.units))}")
        return float(value)

    def parse_whole(self, text: object) -> int:
        """Return the value of a quantity whose values are whole. Raises QuantityError."""
        assert self.whole  # a mistake of ours, not of the text
        return int(self.parse(text))

    def format(self, value: float) -> str:
        """Return a short text that `parse` turns into exactly this value."""
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        unit, size = next(iter(self.units.items()))
        for larger, larger_size in self.units.items():
            if exact and larger not in self.read_only and exact % larger_size == 0:
                unit, size = larger, larger_size
        return f"{(exact / size).normalize():f}{unit}"

    @property
    def pattern(self) -> str:
        """A regular expression for editors, through the JSON schema."""
        sign = "[+-]?" if self.signed else ""
        return rf"^{sign}\d+(\.\d+)? ?({'|'.join(map(re.escape, self.units))})$"

    def _unit(self, unit: str) -> Decimal:
        if unit in self.refused:
            raise QuantityError(f"{self.refused[unit]}; write {self.noun} such as {self.example}")
        if unit not in self.units:
            raise QuantityError(f"{unit!r} is not a unit of {self.noun}: known are {', '.join(self.units)}")
        return self.units[unit]


def _powers(base: int, *units: str) -> dict[str, Decimal]:
    return {unit: Decimal(base**power) for power, unit in enumerate(units)}


BITS_NOT_BYTES = "tc reads bps as bytes per second"

DURATION = Quantity(
    "a duration",
    "_us",
    {
        **_powers(1000, "us", "ms", "s"),
        "min": Decimal(60_000_000),
        "h": Decimal(3_600_000_000),
        "d": Decimal(86_400_000_000),
    },
    "15ms",
    refused={"m": "'m' could be minutes or milliseconds"},
    read_only=frozenset({"min", "h", "d"}),
)
RATE = Quantity(
    "a rate in bits per second",
    "_bits_per_s",
    _powers(1000, "bit", "kbit", "mbit", "gbit"),
    "10gbit",
    refused={"bps": BITS_NOT_BYTES, "kbps": BITS_NOT_BYTES, "mbps": BITS_NOT_BYTES, "gbps": BITS_NOT_BYTES},
)
SIZE = Quantity(
    "a size",
    "_bytes",
    {
        "B": Decimal(1),
        "kB": Decimal(1000),
        "KiB": Decimal(1024),
        "MB": Decimal(1000**2),
        "MiB": Decimal(1024**2),
        "GB": Decimal(1000**3),
        "GiB": Decimal(1024**3),
    },
    "10B",
    refused={"b": "'b' could be bits or bytes"},
    read_only=frozenset({"KiB", "MiB", "GiB"}),
)
EVENT_RATE = Quantity(
    "a rate of events",
    "_per_s",
    _powers(1000, "/s", "k/s", "M/s"),
    "20000/s",
    whole=False,
    read_only=frozenset({"k/s", "M/s"}),
)
FRACTION = Quantity("a percentage", "", {"%": Decimal("0.01")}, "1%", whole=False)
PACKETS = Quantity(
    "a number of packets", "_packets", {"packet": Decimal(1), "packets": Decimal(1)}, "100packets"
)
OFFSET = replace(DURATION, noun="an offset", example="-3s", signed=True)
DRIFT = Quantity("a drift", "_ppm", {"ppm": Decimal(1)}, "200ppm", whole=False, signed=True)

BY_SUFFIX = (DURATION, RATE, SIZE, EVENT_RATE, PACKETS, DRIFT)  # _bits_per_s comes before _per_s


def quantity_of(field_name: str) -> Quantity | None:
    """Return the quantity that a field of this name holds, or None if its value is plain."""
    return next((quantity for quantity in BY_SUFFIX if field_name.endswith(quantity.suffix)), None)


def yaml_name(field_name: str) -> str:
    """Return the name that users write: `delay` for `delay_us`, because the value has the unit."""
    quantity = quantity_of(field_name)
    return field_name.removesuffix(quantity.suffix) if quantity else field_name


def number_hint(given: object, *, is_whole: bool = False) -> str:
    """Return a hint for 1e3, which YAML 1.1 reads as text, or for a number in quotes; empty for others."""
    try:
        value = float(given) if isinstance(given, str) else nan
    except ValueError:
        return ""
    if not isfinite(value) or (is_whole and not value.is_integer()):
        return ""
    mantissa, e, exponent = repr(value).removesuffix(".0").partition("e")
    return f": write {mantissa}{'.0' if e and '.' not in mantissa else ''}{e}{exponent}"


def parse_fraction(text: object) -> float:
    """Return the fraction of a percentage, 0.01 for `1%`; at most 1. Raises QuantityError."""
    value = FRACTION.parse(text)
    if value > 1:
        raise QuantityError(f"{text} is more than 100%")
    return float(value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"
