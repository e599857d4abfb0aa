"""A full mesh: each region is joined with each other."""

import itertools
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from topologies.generated.model import Edge, GeneratedGraph
from topologies.strict import WholeNumber

MESH_MAX = 150  # regions; more would have too many links


class Mesh(GeneratedGraph):
    """A full mesh of regions."""

    kind: Literal["mesh"]
    """A full mesh: each region is joined with each other."""
    regions: WholeNumber = Field(ge=2, le=MESH_MAX)
    """How many there are."""

    @property
    def region_count(self) -> int:
        """How many regions there are."""
        return self.regions

    def edges(self) -> Iterator[Edge]:
        """The regions that are joined."""
        yield from itertools.combinations(range(self.regions), 2)
