"""What packets say about a clock: bounds of its offset, each hard, at the times of the packets.

A packet is never early. One that left the other machine when the reference clock showed `a`, and came here
when this clock showed `b`, says that this clock's offset was at most `b - a` less the least that the way
takes; one that left here at `b` and came there at `a` says that it was at least `b - a` and that much more.
What it says it says of the time `b` by this clock. Of the packets of a short *window* only the two that say
most are kept: the others bound nothing that these do not, but for what the clock drifts within a window.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analysis.capture.clocks.clock import Clock, Floats, Ints

WINDOW_NS = 10_000_000
WINDOWS_MAX = 4_096
IDLE_NS_MAX = 1_000_000_000
"""A longer pause counts as this much time, and so does a clock that is set ahead."""
STAMP_NS = 200
"""By so much two stamps may be wrong by themselves: their last digits, and processors' counters."""


@dataclass(frozen=True, slots=True)
class Sightings:
    """Packets of one direction between two machines, in the order in which the near one saw them.

    place: where in the near machine's capture; `near_ns` and `far_ns`: when, by the machines' own clocks.
    """

    place: Ints
    near_ns: Ints
    far_ns: Ints

    def take(self, rows: Ints | slice) -> "Sightings":
        """Some of the sightings, by index."""
        return Sightings(self.place[rows], self.near_ns[rows], self.far_ns[rows])

    def __len__(self) -> int:
        return len(self.place)


@dataclass(frozen=True, slots=True)
class Exchange:
    """What two machines sent each other: packets that left the near one, and packets that came to it.

    There may be many times as many as these: `left` and `came` are the ones that say most.
    """

    left: Sightings
    came: Sightings
    seen_left: int
    seen_came: int

    @property
    def both_ways(self) -> bool:
        """Whether packets were seen in both directions."""
        return bool(len(self.left) and len(self.came))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a clock's offset, window by window in the order of time.

    Times are by the clock itself, less `origin_ns`; offsets less `base_ns`. A window without packets of one
    direction bounds nothing on that side: its bound is infinite.
    """

    origin_ns: int
    base_ns: int
    passed_ns: Floats  # by the other clock, since the first window
    low_at: Floats
    low: Floats
    high_at: Floats
    high: Floats
    window_ns: int = WINDOW_NS  # how long a window is

    def take(self, rows: "npt.NDArray[np.bool_] | slice") -> "Bounds":
        """The bounds of some windows, by index."""
        return replace(
            self,
            passed_ns=self.passed_ns[rows],
            low_at=self.low_at[rows],
            low=self.low[rows],
            high_at=self.high_at[rows],
            high=self.high[rows],
        )

    def __len__(self) -> int:
        return len(self.low)


def thinned(left: Sightings, came: Sightings) -> Exchange:
    """Keep only the most informative packet of each window and direction."""
    place = np.concatenate((left.place, came.place))
    order = np.argsort(place, kind="stable")
    window = np.empty(len(place), np.int64)
    window[order] = _windows(np.concatenate((left.near_ns, came.near_ns))[order])[0]
    mine = window[: len(left)], window[len(left) :]
    return Exchange(
        left.take(_least(mine[0], left.far_ns - left.near_ns)),
        came.take(_least(mine[1], came.near_ns - came.far_ns)),
        len(left),
        len(came),
    )


def bounds_of(exchange: Exchange, near: Clock, least_ns: tuple[int, int] = (0, 0)) -> Bounds:
    """What an exchange says about the far machine's clock.

    near: the near machine's clock; what is not known about it widens the bounds. least_ns: what the way
    takes at least, there and back.
    """
    left, came = exchange.left, exchange.came
    _, ahead = near.bounds(left.near_ns)
    behind, _ = near.bounds(came.near_ns)
    origin_ns = int(min(left.far_ns.min(initial=_LATE), came.far_ns.min(initial=_LATE)))
    first = left if len(left) else came
    base_ns = int(first.far_ns[0] - first.near_ns[0]) if len(first) else 0
    high = (left.far_ns - left.near_ns - base_ns) + ahead - least_ns[0] + STAMP_NS
    low = (came.far_ns - came.near_ns - base_ns) + behind + least_ns[1] - STAMP_NS
    place = np.concatenate((left.place, came.place))
    order = np.argsort(place, kind="stable")
    windows, passed, window_ns = _windows(np.concatenate((left.near_ns, came.near_ns))[order])
    window = np.empty(len(place), np.int64)
    window[order] = windows
    count = int(window.max(initial=-1)) + 1
    made = Bounds(
        origin_ns,
        base_ns,
        np.zeros(count),
        np.zeros(count),
        np.full(count, -np.inf),
        np.zeros(count),
        np.full(count, np.inf),
        window_ns,
    )
    made.passed_ns[windows[::-1]] = passed[::-1]
    upper, lower = _least(window[: len(left)], high), _least(window[len(left) :], -low)
    for rows, at, bound, seen, values in (
        (window[: len(left)][upper], made.high_at, made.high, left.far_ns[upper], high[upper]),
        (window[len(left) :][lower], made.low_at, made.low, came.far_ns[lower], low[lower]),
    ):
        at[rows], bound[rows] = seen - origin_ns, values
    return made.take(np.isfinite(made.low) | np.isfinite(made.high))


_LATE = np.iinfo(np.int64).max


def _windows(t_ns: Ints) -> tuple[Ints, Floats, int]:
    """The window of each time, the time that passed until it, and how long windows are; of times in the order
    in which they were.

    A clock that is set back stands still here.
    """
    passed = np.cumsum(np.clip(np.diff(t_ns, prepend=t_ns[:1]), 0, IDLE_NS_MAX))
    width = max(WINDOW_NS, int(passed[-1]) // WINDOWS_MAX + 1) if len(passed) else WINDOW_NS
    return passed // width, passed.astype(np.float64), width


def _least(window: Ints, values: npt.NDArray[np.float64] | Ints) -> Ints:
    """The row with the least value of each window."""
    order = np.lexsort((values, window))
    first = np.flatnonzero(np.diff(window[order], prepend=-1))
    rows: Ints = np.sort(order[first])
    return rows
