"""Plain data that is created in large numbers: dataclasses whose immutability only the type checker enforces.

A frozen dataclass also enforces it at run time, so its `__init__` has to bypass its own protection, which
makes it three times as slow. A `value` leaves that to the type checker.
"""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Return the class as a slotted, immutable dataclass, compared and hashed by its fields."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
