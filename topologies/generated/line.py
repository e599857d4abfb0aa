"""A line: each region is joined with the next."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from topologies.generated.model import Edge, GeneratedGraph, RegionCount


class Line(GeneratedGraph):
    """A line of regions."""

    kind: Literal["line"]
    """A line: each region is joined with the next."""
    regions: RegionCount = Field(ge=2)
    """How many there are."""

    @property
    def region_count(self) -> int:
        """How many regions there are."""
        return self.regions

    def edges(self) -> Iterator[Edge]:
        """The regions that are joined."""
        yield from ((number, number + 1) for number in range(self.regions - 1))
