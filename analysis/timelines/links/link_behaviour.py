"""Measures one link direction's behaviour on its segments, next to that of the configured link."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from analysis.arrays import NEVER, NS_PER_S, Bools, Floats, Ints
from analysis.timelines.links.link_flow import (
    GUARD_NS,
    Flow,
    Losses,
    bounds,
    cut_off,
    inside_of,
    larger_than_mtu,
    losses,
    replayed,
    slack,
    strays_of,
)
from analysis.timelines.links.link_replay import Transit
from analysis.timelines.links.link_segments import LinkSide
from analysis.timelines.links.periods import Period
from analysis.timelines.percentiles import weighted
from topologies.link_parameters import queue_limit_packets

LATE_NS, EARLY_NS = 500_000, 50_000
"""An emulator may be this late in the median; two captures of a link stamp one after the other."""
CHANGE_NS = 1_000_000
"""Error of the time of a rate change: waiting segments may have been rescheduled this much earlier."""


@dataclass(frozen=True, slots=True)
class DelayPercentiles:
    """Delays of the segments that both sides of a link saw, in nanoseconds."""

    min_ns: int
    p50_ns: int
    p99_ns: int


@dataclass(frozen=True, slots=True)
class JitterSpread:
    """Excess of the frames that crossed a link with jitter: the median, measured and in random draws
    (lowest and highest), and the width (between the quartiles), measured and drawn. distance: Kolmogorov's,
    of the measured excess from that of all draws; drawn_distance: the largest of a draw's.
    """

    frames: int
    median_ns: int
    least_ns: int
    most_ns: int
    width_ns: int
    drawn_width_ns: int
    distance: float = 0.0
    drawn_distance: float = 0.0


@dataclass(frozen=True, slots=True)
class SegmentShare:
    """Segments affected by a random effect (loss, damage, duplication), and those that could have been."""

    count: int = 0
    of: int = 0

    @property
    def part(self) -> float | None:
        """The share; None without segments."""
        return self.count / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The measurements of one period of one direction; None if not measurable."""

    packets: int  # segments that entered and can be identified
    matched: int  # of these, those that left the link
    leaked: int  # segments that crossed during a cut
    lost: Losses = field(default_factory=Losses)
    at_risk: int = 0  # segments that only random loss could affect
    duplicated: SegmentShare = SegmentShare()  # among those of them that left the link
    damaged: SegmentShare = SegmentShare()  # among all that left the link with a checksum
    crowded: int = 0  # crossed although the queue was over its limit
    unclear: int = 0  # segments that cannot be distinguished from others
    strays: int = 0  # left the link, but were not identified on entry
    delays: DelayPercentiles | None = None
    excess: DelayPercentiles | None = None
    early_ns: int = 0  # maximum
    late_p99_ns: int = 0
    spread: JitterSpread | None = None
    rate_part: float | None = None  # measured rate over configured rate
    rate_bits_per_s: float | None = None  # in the busiest second
    error_bound_ns: int | None = None  # error of delays, if two machines' clocks measured them
    sure_excess: DelayPercentiles | None = (
        None  # in this case: lower bound of the excess over the configuration
    )
    sure_least_ns: int | None = None  # in this case: upper bound of the shortest delay

    @property
    def loss(self) -> float | None:
        """The random loss, as a part of the segments that only random loss could affect."""
        return self.lost.chance / self.at_risk if self.at_risk else None


def measure(
    near: LinkSide,
    far: LinkSide,
    periods: Sequence[Period],
    span_ns: tuple[int, int],
    error_bounds_ns: Callable[[Ints], Floats] | None = None,
    *,
    retimes: bool = True,
) -> list[Behaviour]:
    """Return one Behaviour per period.

    span_ns: when both sides were being captured. error_bounds_ns: returns the error of delays at these times,
    if two clocks measured them. retimes: see `replay`.
    """
    flow = replayed(near, far, periods, span_ns, error_bounds_ns, retimes=retimes)
    return [
        _measure_up(flow, number) if period.up else _measure_cut(flow, number)
        for number, period in enumerate(periods)
    ]


def _measure_cut(flow: Flow, number: int) -> Behaviour:
    """Measure segments that entered a cut link, and those that were in flight when it was cut."""
    inside, period = inside_of(flow, number), flow.periods[number]
    leaked = int((inside & flow.passed).sum())
    if period.start_ns is not None:
        due_ns = flow.earliest.release_ns
        in_flight = (flow.which < number) & flow.passed & (due_ns >= period.start_ns + GUARD_NS)
        in_flight &= due_ns < (NEVER if period.end_ns is None else period.end_ns - GUARD_NS)
        leaked += int((in_flight & flow.earliest.dropped_in_flight).sum())
    entered = int(inside.sum())
    return Behaviour(entered, int((inside & flow.passed).sum()), leaked, Losses(cut=entered - leaked))


def _measure_up(flow: Flow, number: int) -> Behaviour:
    inside, period = inside_of(flow, number), flow.periods[number]
    settled = inside & ~cut_off(flow, number)
    mine = (settled & flow.sure)[flow.met.near]
    here, there = flow.met.near[mine], flow.met.far[mine]
    came_ns, went_ns = flow.far.t_ns[there], flow.near.t_ns[here]
    excess_ns = came_ns - flow.expected_ns[here]
    early_ns = flow.earliest.release_ns[here] - came_ns - np.where(flow.retimed[here], CHANGE_NS, 0)
    late_ns = came_ns - flow.latest.release_ns[here]
    is_vague, error_ns = flow.error_bounds_ns is not None, np.zeros_like(went_ns)
    if flow.error_bounds_ns is not None:
        error_ns = np.ceil(flow.error_bounds_ns(went_ns)).astype(np.int64)
    strays = strays_of(flow, number)
    lost, fair = losses(flow, number, inside, settled, len(strays))
    queued = queue_limit_packets(period)
    is_hole = period.mtu_bytes < flow.periods[0].interface_mtu_bytes
    return Behaviour(
        packets=int((inside & ~flow.copies).sum()),
        matched=int((settled & flow.passed & ~flow.copies).sum()),
        leaked=int((settled & larger_than_mtu(flow, number) & flow.passed).sum()) if is_hole else 0,
        lost=lost,
        at_risk=int(fair.sum()),
        duplicated=SegmentShare(
            int(fair[np.flatnonzero(flow.copies) - 1].sum()), int((fair & flow.passed).sum())
        ),
        damaged=_damaged(flow, settled, strays),
        crowded=0 if queued is None else int((flow.queued[here] > queued + slack(period)).sum()),
        unclear=int(((flow.which == number) & flow.met.unclear).sum()),
        strays=len(strays),
        delays=_delays(came_ns - went_ns),
        excess=_delays(excess_ns),
        early_ns=int((early_ns - error_ns).max(initial=0)),
        late_p99_ns=weighted(late_ns - error_ns, np.ones_like(late_ns), 99) or 0,
        spread=_spread(flow, here, there, excess_ns) if period.jitter_us else None,
        rate_part=rate_part(flow, here, came_ns) if period.rate_bits_per_s else None,
        rate_bits_per_s=peak_rate(flow, number),
        error_bound_ns=int(np.median(error_ns)) if is_vague and len(error_ns) else None,
        sure_excess=_delays(excess_ns - error_ns) if is_vague else None,
        sure_least_ns=int((came_ns - went_ns + error_ns).min()) if is_vague and len(error_ns) else None,
    )


def _damaged(flow: Flow, settled: Bools, strays: Ints) -> SegmentShare:
    """Return the segments that left with a wrong checksum, among those that entered with a right one."""
    here, there = flow.met.near, flow.met.far
    sound = settled[here] & (flow.near.checksum[here] > 0)
    checksum = np.concatenate((flow.far.checksum[there[sound]], flow.far.checksum[strays]))
    return SegmentShare(int((checksum < 0).sum()), int((checksum != 0).sum()))


def _delays(delay_ns: Ints) -> DelayPercentiles | None:
    ones = np.ones(len(delay_ns), np.int64)
    p50_ns, p99_ns = weighted(delay_ns, ones, 50), weighted(delay_ns, ones, 99)
    return None if p50_ns is None or p99_ns is None else DelayPercentiles(int(delay_ns.min()), p50_ns, p99_ns)


def _spread(flow: Flow, here: Ints, there: Ints, excess_ns: Ints) -> JitterSpread | None:
    first = np.flatnonzero(np.diff(flow.far.frame[there], prepend=-1))  # the others share its jitter
    here, excess_ns = here[first], excess_ns[first]
    if not len(here):
        return None
    drawn = [draw[here] - flow.expected_ns[here] for draw in flow.draws]
    medians = [float(np.median(each)) for each in drawn]
    together = np.sort(np.concatenate(drawn))
    return JitterSpread(
        frames=len(here),
        median_ns=int(np.median(excess_ns)),
        least_ns=int(min(medians)),
        most_ns=int(max(medians)),
        width_ns=_width(excess_ns),
        drawn_width_ns=int(np.mean([_width(each) for each in drawn])),
        distance=_distance(excess_ns, together),
        drawn_distance=max(_distance(each, together) for each in drawn),
    )


def _distance(values: Ints, of: Ints) -> float:
    """Return the Kolmogorov distance of values from sorted ones, for which values may be `LATE_NS` late.

    Each end of a step of either distribution is compared, so that the distance is exact.
    """
    ordered = np.sort(values)
    after = np.arange(1, len(ordered) + 1) / len(ordered)
    before = after - 1 / len(ordered)
    # Too early: more values up to here than there may be. Too late: fewer before here than there must be.
    early = after - np.searchsorted(of, ordered + EARLY_NS, side="right") / len(of)
    late = np.searchsorted(of, ordered - LATE_NS, side="left") / len(of) - before
    return float(max(early.max(initial=0.0), late.max(initial=0.0)))


def _width(values: Ints) -> int:
    low, high = np.percentile(values, (25, 75))
    return int(high - low)


SPELL_NS = 50_000_000
"""A rate is measured in spells of at least this length in which it is used up."""
SPELLS_NS = 100_000_000
"""Least total length of spells (root of the sum of squares): an error of half a millisecond is then 0.5 %."""
SPELL_SEGMENTS = 8


def rate_part(flow: Flow, here: Ints, came_ns: Ints) -> float | None:
    """Return the measured rate over the configured one; None if it was not used up for long enough.

    If the unclear segments may or may not have come through, the rate lies between two values: return the one
    nearer to 1.
    """
    parts = [
        _part_of(transit, flow.near.t_ns[here], here, came_ns) for transit in (flow.earliest, flow.latest)
    ]
    known = [part for part in parts if part is not None]
    if len(known) == len(parts) and min(known) <= 1 <= max(known):
        return 1.0
    return min(known, key=lambda part: abs(part - 1), default=None)


def _part_of(transit: Transit, t_ns: Ints, here: Ints, came_ns: Ints) -> float | None:
    """Return the rate part from the growth of the excess while the rate is used up."""
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
    """Return bits per second in the busiest second, of the segments that crossed in the period."""
    start_ns, end_ns = bounds(flow, number)
    came = (flow.far.t_ns >= start_ns) & (flow.far.t_ns < end_ns)
    t_ns = flow.far.t_ns[came]
    if not len(t_ns):
        return None
    # Count only seconds with packets: a time stamp may be years away from the others.
    _, second = np.unique((t_ns - t_ns.min()) // NS_PER_S, return_inverse=True)
    seconds = np.bincount(second, flow.far.wire_bytes[came])
    return float(seconds.max()) * 8
