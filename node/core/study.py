"""What a study (`declaration.Study`) is given: a network of routers, randomness, where its tables go, and who
is told how far it is.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from node.core.machine import Randomness

Ints = npt.NDArray[Any]


class RouterPaths(Protocol):
    """A network of routers; see `topologies.generated.router_arrays`."""

    @property
    def directions(self) -> int:
        """How many link directions there are between routers."""

    @property
    def delays_us(self) -> Ints:
        """Microseconds from each router to each."""

    @property
    def mean_link_delay_us(self) -> float:
        """Of all links between routers."""

    def transit_links_of(self, router: int) -> Sequence[int]:
        """Numbers of the links that join a transit router's domain to others."""

    def unicast_loads(self, sources: Ints, targets: Ints) -> Ints:
        """Packets over each link direction when each source sends one to its target."""

    def multicast_loads(self, sources: Sequence[int], groups: Ints, targets: Ints) -> Ints:
        """The same when each group's source sends one to all of its targets."""

    def crossing(self, links: Sequence[int]) -> npt.NDArray[np.bool_]:
        """From each router to each, whether the route crosses one of these links."""


class Surroundings(Protocol):
    """What one carrying out of a study is given; the same seed gives the same results."""

    seed: int
    rng: Randomness
    generator: np.random.Generator

    def routers(self) -> RouterPaths:
        """The network of the seed."""

    def write(self, table: str, columns: Mapping[str, Sequence[Any] | Ints]) -> None:
        """Add rows to a table."""

    def put(self, **numbers: float) -> None:
        """Put down single numbers, by name."""

    def processor_s(self) -> float:
        """Seconds of the processor so far: for the speed of what was carried out, not for its results."""

    def tell(self, doing: str, done: float) -> None:
        """Say how far it is, from 0 to 1."""
