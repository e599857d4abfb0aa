"""Context of a study (`declaration.Study`): a network of routers, randomness, output tables and a progress
display.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from node.core.content.content import ContentAttribute
from node.core.content.value_distributions import Floats
from node.core.machine import Randomness

Ints = npt.NDArray[Any]


class RouterPaths(Protocol):
    """A network of routers; see `topologies.generated.router_arrays`."""

    @property
    def directions(self) -> int:
        """Number of link directions between routers."""

    @property
    def count(self) -> int:
        """Number of routers."""

    def delays_us(self, a: Ints, b: Ints) -> Ints:
        """Return the delays in microseconds between routers; the arrays are broadcast."""

    def delay_between(self) -> Callable[[int, int], int]:
        """Return a function that gives the delay of one pair of routers, in microseconds."""

    def nearest(self, routers: Ints, candidates: Ints) -> Ints:
        """Return the index of the nearest candidate for each router."""

    @property
    def mean_link_delay_us(self) -> float:
        """Mean delay of all links between routers."""

    def transit_links_of(self, router: int) -> Sequence[int]:
        """Return the numbers of the links that join a transit router's domain to others."""

    def unicast_loads(self, sources: Ints, targets: Ints) -> Ints:
        """Return the packets over each link direction when each source sends one to its target."""

    def multicast_loads(self, sources: Sequence[int], groups: Ints, targets: Ints) -> Ints:
        """Return the packets over each link direction when each group's source sends one to all of its
        targets.
        """

    def crossing(self, links: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Return, for each pair of routers, whether the route crosses one of these links."""


class StudyContext(Protocol):
    """Context of one execution of a study; the same seed gives the same results."""

    seed: int
    rng: Randomness
    generator: np.random.Generator

    def routers(self, **shape: Any) -> RouterPaths:
        """Return the network of the seed. shape: fields of `topologies.generated.transit_stub`."""

    def rows(self, path: str, attributes: Sequence[ContentAttribute]) -> Floats:
        """Return the rows of a CSV or Parquet file, whose columns have the attributes' names."""

    def write(self, table: str, columns: Mapping[str, Sequence[Any] | Ints]) -> None:
        """Add rows to a table."""

    def put(self, **numbers: float) -> None:
        """Record single numbers, by name."""

    def processor_s(self) -> float:
        """Return processor seconds so far: to measure speed, not for results."""

    def report(self, doing: str, done: float) -> None:
        """Show the current step and the progress, from 0 to 1."""
