"""Hard bounds of a clock's offset from packets, at the times of the packets.

A packet never arrives before it was sent. If it left the other machine at reference time `a` and arrived here
at time `b` by this clock, this clock's offset at `b` was at most `b - a` minus the path's least delay. If it
left here at `b` and arrived there at `a`, the offset was at least `b - a` plus that delay. For each short
*window* only the tightest packet of each direction is retained: except for drift within the window, the
others add no information.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.arrays import Floats, Ints, ParallelArrays
from analysis.capture.clocks.clock import OffsetBounds

WINDOW_NS = 10_000_000
WINDOWS_MAX = 4_096
IDLE_NS_MAX = 1_000_000_000
"""A longer pause, or a step of the clock ahead, counts as this much time."""
STAMP_NS = 200
"""The error of two time stamps: rounding, and differences between processors' counters."""


@dataclass(frozen=True, slots=True)
class Sightings(ParallelArrays):
    """Packets of one direction between two machines, in the order of the near machine's capture.

    place: offset in the near machine's capture; `near_ns` and `far_ns`: times by the machines' own clocks.
    """

    place: Ints
    near_ns: Ints
    far_ns: Ints

    def __len__(self) -> int:
        return len(self.place)


@dataclass(frozen=True, slots=True)
class Exchange:
    """Packets between two machines: `left` from the near one, `came` to it.

    Both hold only the tightest packets of each window; `seen_left` and `seen_came` count all.
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
class WindowBounds(ParallelArrays):
    """Bounds of a clock's offset, window by window in the order of time.

    Times are by the clock itself, minus `origin_ns`; offsets are minus `base_ns`. If a window has no packets
    of one direction, the bound on that side is infinite.
    """

    origin_ns: int
    base_ns: int
    passed_ns: Floats  # by the other clock, since the first window
    low_at: Floats
    low: Floats
    high_at: Floats
    high: Floats
    window_ns: int = WINDOW_NS  # how long a window is

    def __len__(self) -> int:
        return len(self.low)


def thinned(left: Sightings, came: Sightings) -> Exchange:
    """Keep only the most informative packet of each window and direction."""
    windows = _windows(left, came)
    return Exchange(
        left.take(_least(windows.left, left.far_ns - left.near_ns)),
        came.take(_least(windows.came, came.near_ns - came.far_ns)),
        len(left),
        len(came),
    )


def bounds_of(exchange: Exchange, near: OffsetBounds, least_ns: tuple[int, int] = (0, 0)) -> WindowBounds:
    """Return the bounds of the far machine's clock that an exchange gives.

    near: the near machine's clock; its error widens the bounds. least_ns: the path's least delay, to the far
    machine and back.
    """
    left, came = exchange.left, exchange.came
    _, ahead = near.bounds(left.near_ns)
    behind, _ = near.bounds(came.near_ns)
    origin_ns = int(min(left.far_ns.min(initial=_LATE), came.far_ns.min(initial=_LATE)))
    first = left if len(left) else came
    base_ns = int(first.far_ns[0] - first.near_ns[0]) if len(first) else 0
    high = (left.far_ns - left.near_ns - base_ns) + ahead - least_ns[0] + STAMP_NS
    low = (came.far_ns - came.near_ns - base_ns) + behind + least_ns[1] - STAMP_NS
    windows = _windows(left, came)
    count = len(windows.passed_ns)
    made = WindowBounds(
        origin_ns,
        base_ns,
        windows.passed_ns,
        np.zeros(count),
        np.full(count, -np.inf),
        np.zeros(count),
        np.full(count, np.inf),
        windows.length_ns,
    )
    upper, lower = _least(windows.left, high), _least(windows.came, -low)
    for rows, at, bound, seen, values in (
        (windows.left[upper], made.high_at, made.high, left.far_ns[upper], high[upper]),
        (windows.came[lower], made.low_at, made.low, came.far_ns[lower], low[lower]),
    ):
        at[rows], bound[rows] = seen - origin_ns, values
    return made.take(np.isfinite(made.low) | np.isfinite(made.high))


_LATE = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class _Windows:
    """The windows of an exchange: of each packet, when each began (since the first), and their length."""

    left: Ints
    came: Ints
    passed_ns: Floats
    length_ns: int


def _windows(left: Sightings, came: Sightings) -> _Windows:
    """Cut the time of an exchange into windows. A step back of the clock counts as no time."""
    order = np.argsort(np.concatenate((left.place, came.place)), kind="stable")
    t_ns = np.concatenate((left.near_ns, came.near_ns))[order]
    passed = np.cumsum(np.clip(np.diff(t_ns, prepend=t_ns[:1]), 0, IDLE_NS_MAX))
    length_ns = max(WINDOW_NS, int(passed[-1]) // WINDOWS_MAX + 1) if len(passed) else WINDOW_NS
    window = np.empty(len(order), np.int64)
    window[order] = passed // length_ns
    begun = np.zeros(int(window.max(initial=-1)) + 1)
    begun[window[order[::-1]]] = passed[::-1]  # the first packet of each window is written last
    return _Windows(window[: len(left)], window[len(left) :], begun, length_ns)


def _least(window: Ints, values: npt.NDArray[np.float64] | Ints) -> Ints:
    """Return the row with the least value of each window."""
    order = np.lexsort((values, window))
    first = np.flatnonzero(np.diff(window[order], prepend=-1))
    return np.sort(order[first])
