"""The kinds of generated topologies, by the value of `kind` in a file. Each gives the joined regions."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self, get_args

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from topologies.document import Document, validated
from topologies.generated.generated_model import CountedGraph, Edge, Generated, GeneratedGraph, RegionCount
from topologies.generated.transit_stub import TransitStub
from topologies.model import LINKS_MAX, REGIONS_MAX, Topology
from topologies.routes import connected
from topologies.strict import WholeNumber, problem, suggestion

DEGREE_MAX = 5  # with more links, random pairings without duplicate pairs become rare
DRAWS_MAX = 100_000


class Regular(CountedGraph):
    """A random regular graph."""

    kind: Literal["regular"]
    """A random connected graph in which every region has the same number of links."""
    regions: RegionCount = Field(ge=3)
    """The number of regions."""
    degree: WholeNumber = Field(3, ge=2, le=DEGREE_MAX)
    """The number of links of each region."""

    def edges(self) -> Iterator[Edge]:
        """Yield the pairs of joined regions."""
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


MESH_MAX = 150  # regions; more would have too many links


class Ring(CountedGraph):
    """A ring of regions."""

    kind: Literal["ring"]
    """A ring: each region is joined with the next one, the last with the first."""
    regions: RegionCount = Field(ge=3)
    """The number of regions."""

    def edges(self) -> Iterator[Edge]:
        """Yield the pairs of joined regions."""
        yield from ((number, (number + 1) % self.regions) for number in range(self.regions))


class Line(CountedGraph):
    """A line of regions."""

    kind: Literal["line"]
    """A line: each region is joined with the next."""
    regions: RegionCount = Field(ge=2)
    """The number of regions."""

    def edges(self) -> Iterator[Edge]:
        """Yield the pairs of joined regions."""
        yield from ((number, number + 1) for number in range(self.regions - 1))


class Star(CountedGraph):
    """A hub with its regions."""

    kind: Literal["star"]
    """A star: the first region is joined with all others."""
    regions: RegionCount = Field(ge=3)
    """The number of regions, including the hub."""

    def edges(self) -> Iterator[Edge]:
        """Yield the pairs of joined regions."""
        yield from ((0, number) for number in range(1, self.regions))


class Mesh(CountedGraph):
    """A full mesh of regions."""

    kind: Literal["mesh"]
    """A full mesh: each region is joined with each other."""
    regions: WholeNumber = Field(ge=2, le=MESH_MAX)
    """The number of regions."""

    def edges(self) -> Iterator[Edge]:
        """Yield the pairs of joined regions."""
        yield from itertools.combinations(range(self.regions), 2)


class Grid(GeneratedGraph):
    """Regions in rows and columns."""

    kind: Literal["grid"]
    """A grid: each region is joined with its neighbours to the right and below."""
    rows: WholeNumber = Field(ge=2, le=REGIONS_MAX)
    """The number of rows."""
    columns: WholeNumber = Field(ge=2, le=REGIONS_MAX)
    """The number of columns; regions are numbered row by row."""

    @property
    def region_count(self) -> int:
        """The number of regions."""
        return self.rows * self.columns

    def edges(self) -> Iterator[Edge]:
        """Yield the pairs of joined regions."""
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


class Tree(CountedGraph):
    """A tree with cross links."""

    kind: Literal["tree"]
    """A tree: every region has `children` regions below it, filled level by level, and cross links."""
    regions: RegionCount = Field(ge=2)
    """The number of regions; the first is the root."""
    children: WholeNumber = Field(2, ge=1)
    """The maximum number of regions below each."""
    cross_links: WholeNumber = Field(0, ge=0, le=LINKS_MAX)
    """The number of additional links, between randomly drawn regions."""

    def edges(self) -> Iterator[Edge]:
        """Yield the pairs of joined regions: those of the tree, then the cross links."""
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


class Cliques(GeneratedGraph):
    """Full meshes joined by few links."""

    kind: Literal["cliques"]
    """Full meshes of regions, each joined with the next by few links."""
    cliques: WholeNumber = Field(2, ge=2, le=MESH_MAX)
    """The number of meshes."""
    size: WholeNumber = Field(ge=2, le=MESH_MAX)
    """The number of regions of each mesh."""
    joined_by: WholeNumber = Field(2, ge=1, le=MESH_MAX)
    """The number of links that join a mesh with the next one, each between different regions."""

    @property
    def region_count(self) -> int:
        """The number of regions."""
        return self.cliques * self.size

    def edges(self) -> Iterator[Edge]:
        """Yield the pairs of joined regions: mesh by mesh, then those between meshes."""
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


MODELS: tuple[type[Generated], ...] = (Ring, Line, Star, Mesh, Grid, Tree, Cliques, Regular, TransitStub)


def kind_of(model: type[Generated]) -> str:
    """Return the only value of a model's field `kind`."""
    (word,) = get_args(model.model_fields["kind"].annotation)
    return str(word)


KINDS = {kind_of(model): model for model in MODELS}


def is_generated(data: Any) -> bool:
    """Return whether a file's content gives a kind instead of links."""
    return isinstance(data, dict) and "kind" in data


def generated(document: Document) -> Topology:
    """Generate the topology of a document with a kind. Raises InputError."""
    kind = document.data["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise document.error(("kind",), f"there is no kind {kind!r:.40}{suggestion(kind, KINDS)}")
    model = validated(KINDS[kind], document)
    try:
        return model.generate()
    except PydanticCustomError as error:
        found = error.context or {}
        raise document.error(found["path"], found["message"]) from None
