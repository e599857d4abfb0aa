"""A random graph in which every region has the same number of links, drawn by the seed.

The pairing model (Bollobas 1980): every region has `degree` ends, which are paired by chance; what joins a
region with itself or twice with another, or is not connected, is drawn again. Every such graph is as likely.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from topologies.generated.model import Edge, GeneratedGraph, RegionCount
from topologies.graph import connected
from topologies.strict import WholeNumber, problem

DEGREE_MAX = 5  # with more links, pairings without a pair twice become rare
DRAWS_MAX = 100_000


class Regular(GeneratedGraph):
    """A random regular graph."""

    kind: Literal["regular"]
    """A random connected graph in which every region has the same number of links."""
    regions: RegionCount = Field(ge=3)
    """How many there are."""
    degree: WholeNumber = Field(3, ge=2, le=DEGREE_MAX)
    """How many links each region has."""

    @property
    def region_count(self) -> int:
        """How many regions there are."""
        return self.regions

    def edges(self) -> Iterator[Edge]:
        """The regions that are joined."""
        rng = self.drawing("links")
        ends = [number for number in range(self.regions) for _ in range(self.degree)]
        for _ in range(DRAWS_MAX):
            rng.shuffle(ends)
            pairs = {(min(pair), max(pair)) for pair in zip(ends[::2], ends[1::2], strict=True)}
            if self._fits(sorted(pairs)):
                yield from sorted(pairs)
                return
        raise problem(f"no such graph was found in {DRAWS_MAX} draws: try another seed", "seed")

    def _fits(self, pairs: Sequence[Edge]) -> bool:
        simple = len(pairs) == self.regions * self.degree // 2 and all(a != b for a, b in pairs)
        return simple and connected(range(self.regions), pairs)

    @model_validator(mode="after")
    def _exists(self) -> Self:
        if self.degree >= self.regions:
            raise problem(f"is too much for {self.regions} regions", "degree")
        if self.regions * self.degree % 2:
            raise problem("regions times degree must be even, or one link has no other end", "degree")
        return self
