"""Parameters of Meghdoot, and of CAN below it, that an experiment may set."""

from dataclasses import dataclass
from typing import Annotated, Literal

from node.core.bounds import AT_LEAST_1MS, Bounds
from node.protocols.can.parameters import CanParameters

PropagationForm = Literal["unique", "basic", "checked"]
MeghdootDelivery = Literal["exactly-once", "best-effort"]
JoinPlace = Literal["by-load", "anywhere"]
LoadMeasure = Literal["matching", "stored"]
SplitRule = Literal["less-work", "paper"]
MATCH_COST = Bounds(0, 1_000)


@dataclass(frozen=True, slots=True)
class MeghdootParameters(CanParameters):
    """Parameters of Meghdoot; times are in microseconds. Sections are those of the paper."""

    port: int = 7500
    tick_us: Annotated[int, AT_LEAST_1MS] = 100_000
    """Interval of publications."""
    propagation: PropagationForm = "unique"
    """Zones that forward an event to a zone: `unique`, one; `basic`, all on its lower right (3.4); `checked`,
    those of them that have no neighbour on their own lower right that could do so: the paper's check."""
    delivery: MeghdootDelivery = "exactly-once"
    """`best-effort` is the paper's: nothing is confirmed, and events may be lost."""
    mirror: bool = True
    """Whether each subscription has a copy at its reflection in the diagonal hyperplane (4.3)."""
    retransmit_us: Annotated[int, AT_LEAST_1MS] = 1_000_000
    """Time without an answer until a subscription or a notification is repeated."""
    wave_timeout_us: int = 2_500_000
    """Time that a zone waits for the zones to which it forwarded an event."""
    confirm_us: Annotated[int, AT_LEAST_1MS] = 100_000
    """Time for which answers are collected before they are sent."""
    acknowledge_us: int = 100_000
    """See `CanParameters`."""
    window: Annotated[int, Bounds(1, 1_000_000)] = 8_192
    """Maximum of unconfirmed events of a publisher; at the limit it waits."""
    refresh_us: Annotated[int, AT_LEAST_1MS] = 30_000_000
    """Interval at which a subscriber repeats an active subscription."""
    expire_us: int = 120_000_000
    """Time without a repetition until a subscription is forgotten."""
    join: JoinPlace = "by-load"
    """Place of a join: at a loaded peer (4.2), or, as in CAN, anywhere."""
    load_us: int = 5_000_000
    """Interval at which a peer sends its load to neighbours; 0: never."""
    loaded_peers: Annotated[int, Bounds(1, 1_000)] = 8
    """Length of the list of the most loaded peers: k."""
    match_cost: Annotated[float, MATCH_COST] = 0.5
    """Cost of matching, or storing, one subscription, relative to forwarding an event."""
    load_counts: LoadMeasure = "matching"
    """Load due to subscriptions (4.1): `matching`, those that events are matched against; `stored`, all."""
    split_rule: SplitRule = "less-work"
    """Whether a zone is split for a joining peer, or copied: `less-work`, whichever leaves the two peers less
    work; `paper`, split if its subscriptions are more load than its events (4.2)."""
    gone_us: Annotated[int, AT_LEAST_1MS] = 60_000_000
    """Time that a publisher keeps an event for a subscriber that does not answer."""

    @property
    def is_confirming(self) -> bool:
        """Whether publishers keep events until they are delivered everywhere."""
        return self.delivery == "exactly-once"

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        CanParameters.__post_init__(self)
        if self.wave_timeout_us <= self.retransmit_us:
            raise ValueError("wave_timeout should be more than retransmit")
        if self.expire_us <= 2 * self.refresh_us:
            raise ValueError("expire should be more than twice refresh")
