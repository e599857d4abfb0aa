"""A tree with cross links: every region has so many children, and some other pairs are joined, too."""

import itertools
from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from topologies.generated.model import Edge, GeneratedGraph, RegionCount
from topologies.model import LINKS_MAX
from topologies.strict import WholeNumber, problem


class Tree(GeneratedGraph):
    """A tree with cross links."""

    kind: Literal["tree"]
    """A tree: every region has `children` regions below it, filled level by level, and cross links."""
    regions: RegionCount = Field(ge=2)
    """How many there are; the first is the root."""
    children: WholeNumber = Field(2, ge=1)
    """How many regions are joined below each, at most."""
    cross_links: WholeNumber = Field(0, ge=0, le=LINKS_MAX)
    """How many further links there are, between regions that are drawn."""

    @property
    def region_count(self) -> int:
        """How many regions there are."""
        return self.regions

    def edges(self) -> Iterator[Edge]:
        """The regions that are joined: those of the tree, then the cross links."""
        yield from self._branches()
        yield from sorted(self.drawing("cross links").sample(self._unjoined(), self.cross_links))

    def _branches(self) -> list[Edge]:
        return [((number - 1) // self.children, number) for number in range(1, self.regions)]

    def _unjoined(self) -> list[Edge]:
        joined = set(self._branches())
        return [pair for pair in itertools.combinations(range(self.regions), 2) if pair not in joined]

    @model_validator(mode="after")
    def _cross_links_fit(self) -> Self:
        if self.cross_links > (possible := len(self._unjoined())):
            raise problem(f"only {possible} pairs of regions are not joined yet", "cross_links")
        return self
