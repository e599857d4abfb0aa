"""Cliques joined by few links: each group is a full mesh, and joined with the next group by some links."""

import itertools
from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from topologies.generated.mesh import MESH_MAX
from topologies.generated.model import Edge, GeneratedGraph
from topologies.strict import WholeNumber, problem


class Cliques(GeneratedGraph):
    """Full meshes joined by few links."""

    kind: Literal["cliques"]
    """Full meshes of regions, each joined with the next by few links."""
    cliques: WholeNumber = Field(2, ge=2, le=MESH_MAX)
    """How many meshes there are."""
    size: WholeNumber = Field(ge=2, le=MESH_MAX)
    """How many regions each mesh has."""
    joined_by: WholeNumber = Field(2, ge=1, le=MESH_MAX)
    """How many links join a mesh with the next, each between regions that have no other such link between
    these two."""

    @property
    def region_count(self) -> int:
        """How many regions there are."""
        return self.cliques * self.size

    def edges(self) -> Iterator[Edge]:
        """The regions that are joined: mesh by mesh, then what joins them."""
        starts = range(0, self.region_count, self.size)
        for start in starts:
            yield from itertools.combinations(range(start, start + self.size), 2)
        for start in starts[1:]:
            yield from ((start - self.size + number, start + number) for number in range(self.joined_by))

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.joined_by > self.size:
            raise problem(f"is more than the {self.size} regions of a mesh", "joined_by")
        if self.region_count > MESH_MAX:
            raise problem(f"makes {self.region_count} regions: at most {MESH_MAX} are possible", "size")
        return self
