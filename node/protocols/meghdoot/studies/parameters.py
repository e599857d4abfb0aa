"""Parameters of Meghdoot's studies (`cutset study NAME --set …`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from node.core.bounds import Bounded, Bounds, sizes_up_to
from node.protocols.meghdoot.parameters import MATCH_COST, LoadMeasure, PropagationForm, SplitRule

SUBSCRIPTIONS = Bounds(1, 1_000_000)
Events = Literal["uniform", "stocks"]
Order = Literal["mixed", "subscriptions-first", "installed"]
Wanted = Literal["quotes", "uniform"]
SimulationEvent = Literal["action", "message"]


@dataclass(frozen=True, slots=True)
class PaperParameters(Bounded):
    """Parameters of the paper's evaluation; defaults are the paper's (5.1)."""

    peers: Annotated[int, Bounds(2, 1_000_000)] = 10_000
    subscriptions: Annotated[int, SUBSCRIPTIONS] = 14_029
    events: Annotated[int, Bounds(1, 10_000_000)] = 115_000
    source: Events = "uniform"
    """Events with uniformly distributed values, or stock quotes."""
    file: str = ""
    """A CSV or Parquet file with quotes, which are the events; its columns have the attributes' names."""
    order: Order = "mixed"
    """Order of subscriptions and events: random, or all subscriptions first; with `installed` no peer joins
    before the first event."""
    wanted: Wanted = "quotes"
    """Values from which the parameters of subscriptions are drawn."""
    join_percent: Annotated[float, Bounds(0, 100, is_open=True)] = 10.0
    """Probability that a peer joins after each simulation event, until all have joined."""
    simulation_event: SimulationEvent = "action"
    """A subscription or an event as a whole, or each message of it."""
    load_every_percent: Annotated[float, Bounds(0.1, 1_000)] = 10.0
    """Growth of the number of peers after which they exchange their loads."""
    propagation: PropagationForm = "unique"
    """Zones that forward an event to a zone (3.4)."""
    load_counts: LoadMeasure = "matching"
    split_rule: SplitRule = "less-work"
    match_cost: Annotated[float, MATCH_COST] = 0.5
    """These three as in experiments; the greater the cost, the more zones are split (4.1)."""
    notified: bool = False
    """Whether events are matched and subscribers notified, which the paper does not count."""


@dataclass(frozen=True, slots=True)
class ReadingsParameters:
    """Parameters of the comparison of readings, as in `PaperParameters`; `all`: every value is tried."""

    peers: int = 1_000
    subscriptions: int = 14_029
    events: int = 115_000
    source: Events = "uniform"
    file: str = ""
    load_every_percent: float = 10.0
    match_cost: float = 0.5
    events_after_joins: int = 1_000
    """Events after the last join: those whose contacts are counted."""
    order: Order | Literal["all"] = "all"
    load_counts: LoadMeasure | Literal["all"] = "all"
    split_rule: SplitRule | Literal["all"] = "all"
    simulation_event: SimulationEvent | Literal["all"] = "all"
    wanted: Wanted | Literal["all"] = "all"

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        if not 1 <= self.events_after_joins <= self.events:
            raise ValueError("events_after_joins should be from 1 to the number of events")
        given = {name: getattr(self, name) for name in self.__slots__}
        del given["events_after_joins"]
        PaperParameters(**{name: value for name, value in given.items() if value != "all"})


@dataclass(frozen=True, slots=True)
class HopsParameters(Bounded):
    """Parameters of routes. Overlays of 100, 300, 1,000 peers and so on are measured, up to `peers`."""

    peers: Annotated[int, Bounds(2, 100_000)] = 3_000
    attributes: Annotated[int, Bounds(1, 7)] = 7
    """The most attributes; 1, 2, 3, 5 and 7 are measured, with twice as many dimensions."""
    routes: Annotated[int, Bounds(1, 1_000_000)] = 2_000
    """Routes that are followed in each overlay."""

    def sizes(self) -> Iterator[int]:
        """Return the numbers of peers."""
        return sizes_up_to(self.peers, 100)


@dataclass(frozen=True, slots=True)
class FailuresParameters(Bounded):
    """Parameters of the failure of part of all peers at once. Events are stock quotes, a file's or drawn."""

    file: str = ""
    peers: Annotated[int, Bounds(20, 100_000)] = 1_000
    subscriptions: Annotated[int, SUBSCRIPTIONS] = 2_000
    failing_percent: Annotated[float, Bounds(0, 50, is_open=True)] = 10.0
    """Part of all peers that fails."""
    rate_per_s: Annotated[float, Bounds(0, 10_000, is_open=True)] = 20.0
    """Event rate of all publishers together."""
    before_s: Annotated[float, Bounds(0, 600, is_open=True)] = 5.0
    """Time in which events are published before the failure."""
    after_s: Annotated[float, Bounds(0, 3_600, is_open=True)] = 30.0
    """Time in which events are published after the failure."""
    heartbeat_us: Annotated[int, Bounds(100_000, 60_000_000)] = 2_000_000
    """Interval of heartbeats between neighbours; after three missing ones a peer is probed."""
