"""A grid: regions in rows and columns, each joined with its neighbours to the right and below."""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from topologies.generated.model import Edge, GeneratedGraph
from topologies.model import REGIONS_MAX
from topologies.strict import WholeNumber, problem


class Grid(GeneratedGraph):
    """Regions in rows and columns."""

    kind: Literal["grid"]
    """A grid: each region is joined with its neighbours to the right and below."""
    rows: WholeNumber = Field(ge=2, le=REGIONS_MAX)
    """How many rows there are."""
    columns: WholeNumber = Field(ge=2, le=REGIONS_MAX)
    """How many columns there are; regions are counted row by row."""

    @property
    def region_count(self) -> int:
        """How many regions there are."""
        return self.rows * self.columns

    def edges(self) -> Iterator[Edge]:
        """The regions that are joined."""
        for number in range(self.region_count):
            if (number + 1) % self.columns:
                yield number, number + 1
            if number + self.columns < self.region_count:
                yield number, number + self.columns

    @model_validator(mode="after")
    def _not_too_large(self) -> Self:
        if self.region_count > REGIONS_MAX:
            raise problem(f"makes {self.region_count} regions: at most {REGIONS_MAX} are possible", "columns")
        return self
