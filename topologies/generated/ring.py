"""A ring: each region is joined with the next, the last with the first."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from topologies.generated.model import Edge, GeneratedGraph, RegionCount


class Ring(GeneratedGraph):
    """A ring of regions."""

    kind: Literal["ring"]
    """A ring: each region is joined with the next, the last with the first."""
    regions: RegionCount = Field(ge=3)
    """How many there are."""

    @property
    def region_count(self) -> int:
        """How many regions there are."""
        return self.regions

    def edges(self) -> Iterator[Edge]:
        """The regions that are joined."""
        yield from ((number, (number + 1) % self.regions) for number in range(self.regions))
