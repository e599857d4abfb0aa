"""What an experiment may set of Meghdoot, and of CAN beneath it."""

from dataclasses import dataclass
from typing import Literal

from node.protocols.can.parameters import CanParameters

Form = Literal["unique", "basic"]
Delivery = Literal["exactly-once", "best-effort"]
Join = Literal["by-load", "anywhere"]
WINDOW_MAX = 1_000_000
LOADED_MAX = 1_000
MATCH_COST_MAX = 1_000.0


@dataclass(frozen=True, slots=True)
class Parameters(CanParameters):
    """Times are microseconds. Sections: of the paper."""

    port: int = 7500
    tick_us: int = 100_000
    """Between two publications."""
    propagation: Form = "unique"
    """Which zones pass an event on to a zone: `unique`, one; `basic`, all on its lower right (3.4)."""
    delivery: Delivery = "exactly-once"
    """`best-effort` is the paper's: nothing is confirmed, and what is lost is lost."""
    mirror: bool = True
    """Whether each subscription is also stored at its reflection in the diagonal hyperplane (4.3)."""
    retransmit_us: int = 1_000_000
    """Without an answer, until a subscription or a notification is sent again."""
    wave_timeout_us: int = 2_500_000
    """Until a zone waits no longer for those to which it passed an event on."""
    confirm_us: int = 100_000
    """How long answers are collected before they are sent."""
    acknowledge_us: int = 100_000
    """See `CanParameters`."""
    window: int = 8_192
    """Events of a publisher that are not known to be everywhere; with more it waits."""
    refresh_us: int = 30_000_000
    """Between two words of a subscriber about a subscription that stands."""
    expire_us: int = 120_000_000
    """Without such a word, until a subscription is forgotten."""
    join: Join = "by-load"
    """Where a peer joins: at one with much to do (4.2), or, as in CAN, anywhere."""
    load_us: int = 5_000_000
    """Between two words of a peer to its neighbours about its load; 0: never."""
    loaded_peers: int = 8
    """Peers in the list of the most loaded ones: k."""
    match_cost: float = 0.5
    """What matching one subscription costs, beside passing an event on: a zone is split or copied for a peer
    that joins, after whichever the two have less to do (4.1)."""
    gone_us: int = 60_000_000
    """How long a publisher keeps an event for a subscriber that gives no answer."""

    @property
    def is_confirming(self) -> bool:
        """Whether publishers keep events until they are everywhere."""
        return self.delivery == "exactly-once"

    def __post_init__(self) -> None:
        """Raises ValueError that names the parameter."""
        CanParameters.__post_init__(self)
        if not 1 <= self.window <= WINDOW_MAX:
            raise ValueError(f"window should be from 1 to {WINDOW_MAX}")
        if self.wave_timeout_us <= self.retransmit_us:
            raise ValueError("wave_timeout should be more than retransmit")
        if self.expire_us <= 2 * self.refresh_us:
            raise ValueError("expire should be more than twice refresh")
        if not 1 <= self.loaded_peers <= LOADED_MAX:
            raise ValueError(f"loaded_peers should be from 1 to {LOADED_MAX}")
        if not 0 <= self.match_cost <= MATCH_COST_MAX:
            raise ValueError(f"match_cost should be from 0 to {MATCH_COST_MAX}")
        for name in ("tick_us", "retransmit_us", "confirm_us", "refresh_us", "gone_us"):
            if getattr(self, name) < 1_000:
                raise ValueError(f"{name.removesuffix('_us')} should be at least 1ms")
