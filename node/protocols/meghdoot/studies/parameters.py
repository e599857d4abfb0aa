"""Parameters of Meghdoot's studies (`cutset study NAME --set …`)."""

from dataclasses import dataclass
from typing import Literal

from node.protocols.meghdoot.parameters import MATCH_COST_MAX, LoadMeasure, SplitRule

Events = Literal["uniform", "stocks"]


@dataclass(frozen=True, slots=True)
class PaperParameters:
    """Parameters of the paper's evaluation; defaults are the paper's (5.1)."""

    peers: int = 10_000
    subscriptions: int = 14_029
    events: int = 115_000
    source: Events = "uniform"
    """Events with uniformly distributed values, or stock quotes."""
    order: Literal["mixed", "subscriptions-first", "installed"] = "mixed"
    """Order of subscriptions and events: random, or all subscriptions first; with `installed` no peer joins
    before the first event."""
    wanted: Literal["quotes", "uniform"] = "quotes"
    """Values from which the parameters of subscriptions are drawn."""
    join_percent: float = 10.0
    """Probability that a peer joins after each simulation event, until all have joined."""
    simulation_event: Literal["action", "message"] = "action"
    """A subscription or an event as a whole, or each message of it."""
    load_every_percent: float = 10.0
    """Growth of the number of peers after which they exchange their loads."""
    propagation: Literal["unique", "basic"] = "unique"
    """Zones that forward an event to a zone (3.4)."""
    load_counts: LoadMeasure = "matching"
    split_rule: SplitRule = "less-work"
    match_cost: float = 0.5
    """These three as in experiments; the greater the cost, the more zones are split (4.1)."""
    notified: bool = False
    """Whether subscribers are notified, too; the paper does not count that."""

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        if not 2 <= self.peers <= 1_000_000:
            raise ValueError("peers should be from 2 to 1000000")
        if not 1 <= self.subscriptions <= 1_000_000:
            raise ValueError("subscriptions should be from 1 to 1000000")
        if not 1 <= self.events <= 10_000_000:
            raise ValueError("events should be from 1 to 10000000")
        if not 0 < self.join_percent <= 100:
            raise ValueError("join_percent should be more than 0, and at most 100")
        if not 0.1 <= self.load_every_percent <= 1_000:
            raise ValueError("load_every_percent should be from 0.1 to 1000")
        if not 0 <= self.match_cost <= MATCH_COST_MAX:
            raise ValueError(f"match_cost should be from 0 to {MATCH_COST_MAX}")


@dataclass(frozen=True, slots=True)
class ReadingsParameters:
    """Parameters of the comparison of readings; the others are those of `PaperParameters`."""

    peers: int = 1_000
    subscriptions: int = 14_029
    events: int = 115_000
    source: Events = "uniform"
    load_every_percent: float = 10.0
    match_cost: float = 0.5
    events_after_joins: int = 1_000
    """Events after the last join: those whose contacts are counted."""

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        if not 1 <= self.events_after_joins <= self.events:
            raise ValueError("events_after_joins should be from 1 to the number of events")
        given = {name: getattr(self, name) for name in self.__slots__ if name != "events_after_joins"}
        PaperParameters(**given)


@dataclass(frozen=True, slots=True)
class FailuresParameters:
    """Parameters of the failure of part of all peers at once. Events are stock quotes."""

    peers: int = 1_000
    subscriptions: int = 2_000
    failing_percent: float = 10.0
    """Part of all peers that fails."""
    rate_per_s: float = 20.0
    """Event rate of all publishers together."""
    before_s: float = 5.0
    """Time in which events are published before the failure."""
    after_s: float = 30.0
    """Time in which events are published after the failure."""
    heartbeat_us: int = 2_000_000
    """Interval of heartbeats between neighbours; after three missing ones a peer is probed."""

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        if not 20 <= self.peers <= 100_000:
            raise ValueError("peers should be from 20 to 100000")
        if not 1 <= self.subscriptions <= 1_000_000:
            raise ValueError("subscriptions should be from 1 to 1000000")
        if not 0 < self.failing_percent <= 50:
            raise ValueError("failing_percent should be more than 0, and at most 50")
        if not 0 < self.rate_per_s <= 10_000:
            raise ValueError("rate_per_s should be more than 0, and at most 10000")
        if not (0 < self.before_s <= 600 and 0 < self.after_s <= 3_600):
            raise ValueError("before_s should be at most 600, after_s at most 3600, both more than 0")
        if not 100_000 <= self.heartbeat_us <= 60_000_000:
            raise ValueError("heartbeat should be from 100ms to 60s")
