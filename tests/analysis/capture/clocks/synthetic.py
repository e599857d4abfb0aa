"""Packets between two machines with known clocks and random delays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.capture.clocks.bounds import Sightings, thinned
from analysis.capture.clocks.wire import MachineExchange

S, MS, US = 10**9, 10**6, 10**3
ZERO = 1_700_000_000 * S
Times = np.ndarray[Any, np.dtype[np.int64]]
Offset = Callable[[Times], Any]
"""Returns a clock's offset from true time in ns, by ns of true time since ZERO."""


@dataclass(frozen=True)
class Way:
    """The delays of packets: the minimum and the mean excess, in each direction, ns."""

    least: tuple[int, int] = (40 * US, 90 * US)
    jitter: tuple[int, int] = (30 * US, 60 * US)
    packets_per_s: int = 200


def right(t_ns: Times) -> Times:
    """Return the offset of a correct clock."""
    return 0 * t_ns


def shown(offset: Offset, t_ns: Times) -> Times:
    """Return the times that a clock shows at true times."""
    return ZERO + t_ns + np.rint(offset(t_ns)).astype(np.int64)


def met(
    near: Offset, far: Offset, *, way: Way = Way(), names: str = "ab", seconds: int = 30, seed: int = 0
) -> MachineExchange:
    """Return the exchange of packets that two machines observe."""
    rng = np.random.default_rng(seed)
    count = seconds * way.packets_per_s
    left, sent_back = (np.sort(rng.integers(0, seconds * S, count)) for _ in "ab")
    took, took_back = (
        least + rng.exponential(jitter, count).astype(np.int64)
        for least, jitter in zip(way.least, way.jitter, strict=True)
    )
    came = sent_back + took_back
    place = np.empty(2 * count, np.int64)
    place[np.argsort(np.concatenate((left, came)), kind="stable")] = np.arange(2 * count)
    back = np.argsort(came, kind="stable")
    return MachineExchange(
        "-".join(names),
        names[0],
        names[1],
        thinned(
            Sightings(place[:count], shown(near, left), shown(far, left + took)),
            Sightings(place[count:][back], shown(near, came)[back], shown(far, sent_back)[back]),
        ),
    )
