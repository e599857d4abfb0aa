"""A star: the first region is joined with all others."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from topologies.generated.model import Edge, GeneratedGraph, RegionCount


class Star(GeneratedGraph):
    """A hub with its regions."""

    kind: Literal["star"]
    """A star: the first region is joined with all others."""
    regions: RegionCount = Field(ge=3)
    """How many there are, the hub included."""

    @property
    def region_count(self) -> int:
        """How many regions there are."""
        return self.regions

    def edges(self) -> Iterator[Edge]:
        """The regions that are joined."""
        yield from ((0, number) for number in range(1, self.regions))
