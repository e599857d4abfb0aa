"""Plain data that is made by the million: dataclasses that the type checker keeps from being changed.

A frozen dataclass is also kept from it while the program runs, and so its `__init__` has to go around its own
protection, which makes it three times as slow. A `value` leaves that to the type checker.
"""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(made: type[T]) -> type[T]:
    """The class as a slotted dataclass that is compared and hashed by its fields, and never changed."""
    return dataclass(slots=True, unsafe_hash=True)(made)
