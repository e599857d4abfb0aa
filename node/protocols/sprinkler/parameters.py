"""Sprinkler's parameters and their defaults, as plain data.

In an experiment file a parameter's name is the field's name without its unit (`advertisement_period: 1s`);
the unit defines which quantity is written there. The paper (3.1) gives no value for the advertisement period
A; the default is our choice. Its C is only needed for `subscription_rule: paper`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

UNSYNCED_MIN_BYTES = 4_096
"""Minimum limit of unsynced data: a page."""
GREETING_BYTES = 1024
"""Room for the messages that a peer receives on connecting, before it has read anything."""


@dataclass(frozen=True, slots=True)
class SprinklerParameters:
    """Every named limit, period and factor of the protocol."""

    port: int = 7000  # on which every proxy listens

    # Proxy-level protocol (paper 3.1)
    advertisement_period_us: int = 1_000_000  # A
    subscription_rule: Literal["paths", "paper"] = "paths"  # paper: figure 1 as printed, for comparison
    c: float = 1_000.0  # of the paper's rule, in events times seconds; 0: every proxy ahead is taken
    # a client that sends another client nothing for this number of periods sends a heartbeat
    neighbour_periods: int = 5
    silence_periods: float = 1.6  # a peer not heard for this number of periods counts as unreachable
    heartbeats: int = 2  # per period between proxies, so that they notice silence earlier

    # how long a proxy that starts waits for the counters that others have of its stream
    restore_wait_us: int = 2_000_000

    # Replicated proxies (paper 3.3)
    failure_grace_us: int = 200_000  # a replica whose connection broke has this time to return

    # Connections
    connect_timeout_us: int = 1_000_000  # longer than any round trip; bounds one attempt
    reconnect_first_us: int = 50_000  # pause after the first failure; doubles with each
    reconnect_last_us: int = 500_000  # longest pause; a node never gives up on a peer

    # Region-level protocol (paper 3.2)
    view_size: int = 20  # V; the paper has 10 to 20
    gossip_period_us: int = 1_000_000  # interval at which each node sends its view to one neighbour
    fanout: int = 4  # F: neighbours that are notified; the paper's best (Fig. 5b)
    shuffle_time_us: int = 30_000  # how long these neighbours stay the same; the paper's value (Fig. 6)
    # event bytes in a client's Recv; the same amount may be requested ahead
    recv_limit_bytes: int = 8_388_608
    request_timeout_us: int = 500_000  # without progress, until the proxy is asked; also for a missed NOTIFY

    # Publishing
    flush_interval_us: int = 50_000  # interval at which a driver closes its batch
    flush_intervals: int = 4  # for which it may stay open while the previous one is not acknowledged
    batch_limit_bytes: int = 65_536  # event bytes in one batch
    window_bytes: int = 1_048_576  # unacknowledged event bytes of a driver
    # batches, likewise; the proxy remembers the same number of each driver's requests
    window_batches: int = 1_024
    retry_us: int = 500_000  # after a temporary refusal (history full)
    # whose requests a proxy remembers; beyond it the longest silent one is forgotten
    publishers_limit: int = 4_096

    # Memory
    frame_limit_bytes: int = 1_048_576  # a longer frame is refused
    burst_limit_bytes: int = 65_536  # sent on one connection before it must report that it can take more
    # small messages that wait for a peer; beyond it the peer is disconnected
    control_limit_bytes: int = 1_048_576
    history_limit_bytes: int = 2_147_483_648  # memory for stored events, payload and overhead

    # Durability (the paper's future work, 7)
    durable: bool = False  # replicas store Hist on disk, and count only synced events as stored
    segment_limit_bytes: int = 4_194_304  # of the log on disk; a longer one is closed and the next begun
    unsynced_limit_bytes: int = 67_108_864  # waiting for the disk; beyond it no more events are accepted

    def silence_us(self, *, is_between_proxies: bool) -> int:
        """Return how long a peer may be silent. All heartbeat intervals tolerate the same delay."""
        interval = 1 / self.heartbeats if is_between_proxies else 1.0
        return int((self.silence_periods - 1 + interval) * self.advertisement_period_us)

    def __post_init__(self) -> None:
        """Raise ValueError, naming the field, for invalid values."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type in {int, float} and field.name != "c" and not value > 0:
                raise ValueError(f"{field.name} must be greater than 0")
        if self.c < 0:
            raise ValueError("c must not be negative")
        if self.silence_periods <= 1:
            raise ValueError("silence_periods must be greater than 1: advertisements are the heartbeats")
        if self.reconnect_last_us < self.reconnect_first_us:
            raise ValueError("reconnect_last_us must not be less than reconnect_first_us")
        if self.batch_limit_bytes * 2 > self.frame_limit_bytes:
            raise ValueError("frame_limit_bytes must be at least twice batch_limit_bytes")
        if self.history_limit_bytes < 2 * self.batch_limit_bytes:
            raise ValueError(
                "history_limit_bytes must be at least twice batch_limit_bytes: "
                "otherwise a full batch may not fit, and publishers wait forever"
            )
        if self.unsynced_limit_bytes < UNSYNCED_MIN_BYTES:
            raise ValueError(
                f"unsynced_limit_bytes must be at least {UNSYNCED_MIN_BYTES}, a page: "
                "with less, a head accepts one publication for each retry"
            )
        if self.control_limit_bytes < GREETING_BYTES:
            raise ValueError(
                f"control_limit_bytes must be at least {GREETING_BYTES}: "
                "a peer receives this amount when it connects, and would be disconnected at once"
            )


def roles_problem(counts: Mapping[str, int]) -> str | None:
    """Return why a region cannot have this number of processes per role, or None.

    Without a configuration service, no process decides who belongs to a chain while one of its replicas is
    away: the chain would stop with the first failure, and a head that lost its state could not recover it.
    """
    if counts.get("proxy", 0) > 1 and not counts.get("configuration", 0):
        return f"{counts['proxy']} proxies in a region form a chain, which needs a service: configuration: 1"
    served = next((role for role in ("driver", "client") if counts.get(role, 0)), None)
    if served is not None and not counts.get("proxy", 0):
        return (
            f"a {served} connects to the proxies of its region, and there is none: give it proxy: 1 or more"
        )
    if counts.get("configuration", 0) > 1:
        return "a region has one configuration service at most: make it configuration: 1"
    return None


def is_durable(parameters: Mapping[str, Any]) -> bool:
    """Return whether acknowledged events survive a power failure of all replicas."""
    return bool(parameters["durable"])
