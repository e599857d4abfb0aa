"""Bounds of parameters, declared with their types: `probes: Annotated[int, Bounds(1, 8)] = 3`."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, get_origin, get_type_hints

UNITS = {"h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1_000}
"""Microseconds of each unit."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Least and greatest permitted value of a parameter. If `is_open`, the least value itself is not
    permitted.
    """

    least: float
    most: float = math.inf
    is_open: bool = False

    def allow(self, value: float) -> bool:
        """Return whether a value is within the bounds."""
        return (self.least < value if self.is_open else self.least <= value) and value <= self.most

    def text(self, name: str) -> str:
        """Return the bounds as a sentence. name: of the parameter; the name of a duration ends with `_us`."""
        shown = _duration if name.endswith("_us") else "{:.15g}".format
        least, most = shown(self.least), shown(self.most)
        if self.is_open:
            said = f"more than {least}, and at most {most}"
        else:
            said = f"at least {least}" if self.most == math.inf else f"from {least} to {most}"
        return f"{name.removesuffix('_us')} should be {said}"


def _duration(us: float) -> str:
    unit = next((unit for unit, length_us in UNITS.items() if us % length_us == 0), "ms")
    return f"{us / UNITS[unit]:g}{unit}"


AT_LEAST_1MS = Bounds(1_000)
"""Bounds of a duration in microseconds that must not be 0."""


class Bounded:
    """Parameters with bounds: the base of a dataclass."""

    __slots__ = ()
    bounds: ClassVar[Mapping[str, Bounds]] = {}

    def __init_subclass__(cls) -> None:
        """Store the bounds of a class's fields."""
        hints = get_type_hints(cls, include_extras=True)
        cls.bounds = {
            name: kind.__metadata__[0] for name, kind in hints.items() if get_origin(kind) is Annotated
        }

    def __post_init__(self) -> None:
        """Check the bounds. Raises ValueError that names the parameter."""
        for name, bounds in self.bounds.items():
            if not bounds.allow(getattr(self, name)):
                raise ValueError(bounds.text(name))


def sizes_up_to(most: int, least: int) -> Iterator[int]:
    """Yield `least`, three times it, ten times it and so on, up to `most`."""
    while least < most:
        yield from (step * least for step in (1, 3) if step * least < most)
        least *= 10
    yield most
