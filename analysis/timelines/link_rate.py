"""At what rate one direction let segments out.

A rate that is off shows as an excess over the replay that grows, or shrinks, with the time for which a queue
stands.
"""

import numpy as np

from analysis.timelines.arrays import Ints
from analysis.timelines.link_flow import Flow, bounds
from analysis.timelines.link_replay import NS_PER_S, Transit

SPELL_NS = 50_000_000
"""A rate shows in spells of this long, and longer, in which it is used up."""
SPELLS_NS = 100_000_000
"""So long altogether (as the root of the sum of squares): half a millisecond of error is 0.5 % then."""
SPELL_SEGMENTS = 8


def rate_part(flow: Flow, here: Ints, came_ns: Ints) -> float | None:
    """The rate over the configured one; None where it was not used up, or not for long enough. If the
    unclear segments may have come through or not, it lies between two figures: the one nearer to 1.
    """
    parts = [
        _part_of(transit, flow.near.t_ns[here], here, came_ns) for transit in (flow.earliest, flow.latest)
    ]
    known = [part for part in parts if part is not None]
    if len(known) == len(parts) and min(known) <= 1 <= max(known):
        return 1.0
    return min(known, key=lambda part: abs(part - 1), default=None)


def _part_of(transit: Transit, t_ns: Ints, here: Ints, came_ns: Ints) -> float | None:
    """From how the excess grows while the rate is used up."""
    if not len(here):
        return None
    begin_ns, excess_ns = transit.begin_ns[here], came_ns - transit.release_ns[here]
    spell = np.cumsum(begin_ns <= t_ns)
    starts = np.flatnonzero(np.diff(spell, prepend=-1))
    ends = np.append(starts[1:], len(here))
    growth = weight = 0.0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end - start < SPELL_SEGMENTS or begin_ns[end - 1] - begin_ns[start] < SPELL_NS:
            continue
        quarter = (end - start) // 4
        first, last = slice(start, start + quarter), slice(end - quarter, end)
        took_ns = float(np.median(begin_ns[last]) - np.median(begin_ns[first]))
        grew_ns = float(np.median(excess_ns[last]) - np.median(excess_ns[first]))
        growth, weight = growth + grew_ns * took_ns, weight + took_ns**2
    return 1 / (1 + growth / weight) if weight >= SPELLS_NS**2 else None


def peak_rate(flow: Flow, number: int) -> float | None:
    """Bits a second in the busiest second of what came out while the period held."""
    start_ns, end_ns = bounds(flow, number)
    came = (flow.far.t_ns >= start_ns) & (flow.far.t_ns < end_ns)
    t_ns = flow.far.t_ns[came]
    if not len(t_ns):
        return None
    # Only seconds in which something came: a packet may be dated years away from the others.
    _, second = np.unique((t_ns - t_ns.min()) // NS_PER_S, return_inverse=True)
    seconds = np.bincount(second, flow.far.wire_bytes[came])
    return float(seconds.max()) * 8
