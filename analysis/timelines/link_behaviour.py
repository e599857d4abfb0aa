"""What one direction of a link did to its segments, held beside what the configured link would have done.

The segments that entered are replayed through the configured link (`link_replay`), given which of them came
through. What a segment took beyond that is its *excess*: what the link did that nobody asked for. With jitter
there is a range: *early* is how long before the earliest possible time one came, *late* how long after the
latest, and the excess is against the mean of draws by chance. A rate that is off shows as an excess that
grows (or shrinks) with the time for which a queue stands; `rate_part` is by how much.

What did not come through is told apart: under way when the link was cut, dropped by a full queue, larger than
the MTU, or lost by chance. Where the replay cannot tell whether the queue was full, a segment says nothing
about chance, whether it came or not. So chance is k losses among n segments, nothing else among them.

Each segment counts for the period in which it entered. Those that entered or would have left within
`GUARD_NS` of a change count for none.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.timelines.arrays import Bools, Ints
from analysis.timelines.link_replay import (
    NS_PER_S,
    Transit,
    ns_per_byte,
    queue_limit,
    replay,
    step,
    waiting,
)
from analysis.timelines.link_segments import Matched, Side, match
from analysis.timelines.percentiles import weighted
from analysis.timelines.periods import Period
from analysis.timelines.pieces import NEVER
from topologies.queueing import ETHERNET_BYTES

Floats = npt.NDArray[np.float64]

GUARD_NS = 10_000_000
"""A change takes hold and heals within 10 ms of its applied time (DESIGN, Links)."""
CHANGE_NS = 1_000_000
"""A rate is told to have changed when it has; what waits then was timed anew by so much earlier."""
STAMP_NS = 200_000
"""A queue's length is told from time stamps; by so much those of capture and link emulator may differ."""
DRAWS = 16
SPELL_NS = 50_000_000
"""A rate shows in spells of this long, and longer, in which it is used up."""
SPELLS_NS = 100_000_000
"""So long altogether (as the root of the sum of squares): half a millisecond of error is 0.5 % then."""
SPELL_SEGMENTS = 8


@dataclass(frozen=True, slots=True)
class Delays:
    """Of the segments seen on both sides."""

    min_ns: int
    p50_ns: int
    p99_ns: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Segments that did not come through, and why."""

    chance: int = 0
    queue: int = 0
    cut: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Spread:
    """Of the excess of frames that came out, with jitter: its median, measured and in draws by chance (least
    and most), and its width (between the quartiles), measured and drawn.
    """

    frames: int
    median_ns: int
    least_ns: int
    most_ns: int
    width_ns: int
    drawn_width_ns: int


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One period of one direction, measured; None where nothing was there to be measured."""

    packets: int  # segments that entered and can be told from all others
    matched: int  # of these, the ones that came through
    leaked: int  # came through a cut
    lost: Lost = Lost()
    at_risk: int = 0  # segments that only chance could lose
    crowded: int = 0  # came through although the queue was longer than it may be
    unclear: int = 0  # segments that cannot be told from others
    strays: int = 0  # came out and never entered, as far as can be told
    delays: Delays | None = None
    excess: Delays | None = None
    early_ns: int = 0  # the most
    late_p99_ns: int = 0
    spread: Spread | None = None
    rate_part: float | None = None  # measured rate over configured rate
    rate_bits_per_s: float | None = None  # in the busiest second
    bar_ns: int | None = None  # where two machines' clocks measured it: by how much delays may be wrong
    sure_excess: Delays | None = None  # then: packets took at least this beyond what was asked for
    sure_least_ns: int | None = None  # then: some packet took no more than this

    @property
    def loss(self) -> float | None:
        """The part that was lost by chance, of the segments that only chance could lose."""
        return self.lost.chance / self.at_risk if self.at_risk else None


@dataclass(frozen=True, slots=True)
class _Flow:
    """All of one direction's segments, replayed."""

    near: Side
    far: Side
    met: Matched
    periods: Sequence[Period]
    span_ns: tuple[int, int]
    which: Ints  # the period in which each entered
    passed: Bools
    earliest: Transit
    latest: Transit
    expected_ns: Ints
    queued: Ints  # at least, and at most: by whether the unclear ones came through
    queued_most: Ints
    retimed: Bools  # which wait while the rate changes, or behind such
    draws: list[Ints]
    bars_ns: Callable[[Ints], Floats] | None
    retimes: bool


def measure(
    near: Side,
    far: Side,
    periods: Sequence[Period],
    span_ns: tuple[int, int],
    bars_ns: Callable[[Ints], Floats] | None = None,
    *,
    retimes: bool = True,
) -> list[Behaviour]:
    """One Behaviour per period. span_ns: when both sides were being captured. bars_ns: by how much delays of
    these times may be wrong, where two clocks measured them. retimes: see `replay`.
    """
    flow = _replayed(near, far, periods, span_ns, bars_ns, retimes=retimes)
    return [
        _measure_up(flow, number) if period.up else _measure_cut(flow, number)
        for number, period in enumerate(periods)
    ]


def _replayed(
    near: Side,
    far: Side,
    periods: Sequence[Period],
    span_ns: tuple[int, int],
    bars_ns: Callable[[Ints], Floats] | None,
    *,
    retimes: bool,
) -> _Flow:
    met = match(near, far)
    passed = np.zeros(len(near.t_ns), np.bool_)
    passed[met.near] = True
    perhaps = passed | met.unclear
    earliest = replay(near, passed, periods, -1, retimes=retimes)
    latest = replay(near, perhaps, periods, 1, retimes=retimes)
    draws = []
    if any(period.jitter_us for period in periods):
        chance = np.random.default_rng(0)  # the same draws for the same packets
        draws = [replay(near, perhaps, periods, chance, retimes=retimes).release_ns for _ in range(DRAWS)]
    expected_ns = np.mean(draws, axis=0).astype(np.int64) if draws else latest.release_ns
    starts = np.array([period.start_ns or 0 for period in periods])
    return _Flow(
        near=near,
        far=far,
        met=met,
        periods=periods,
        span_ns=span_ns,
        which=np.searchsorted(starts, near.t_ns, side="right") - 1,
        passed=passed,
        earliest=earliest,
        latest=latest,
        expected_ns=expected_ns,
        queued=waiting(near, passed, earliest),
        queued_most=waiting(near, perhaps, latest),
        retimed=_retimed(near, perhaps, periods, latest),
        draws=draws,
        bars_ns=bars_ns,
        retimes=retimes,
    )


def _retimed(near: Side, passed: Bools, periods: Sequence[Period], transit: Transit) -> Bools:
    """Which segments wait for the rate while it changes, or behind such."""
    found = np.zeros(len(near.t_ns), np.bool_)
    idle_ns = near.t_ns[passed & (transit.begin_ns <= near.t_ns)]
    for before, after in itertools.pairwise(periods):
        if after.start_ns is None or before.rate_bits_per_s in (None, after.rate_bits_per_s):
            continue
        next_idle = np.searchsorted(idle_ns, after.start_ns)
        end_ns = idle_ns[next_idle] if next_idle < len(idle_ns) else NEVER
        found |= (transit.release_ns > after.start_ns) & (near.t_ns < end_ns)
    return found


def _bounds(flow: _Flow, number: int) -> tuple[int, int]:
    """From when until when the period surely held."""
    period, (start_ns, end_ns) = flow.periods[number], flow.span_ns
    if period.start_ns is not None:
        start_ns = max(start_ns, period.start_ns + GUARD_NS)
    if period.end_ns is not None:
        end_ns = min(end_ns, period.end_ns - GUARD_NS)
    return start_ns, max(start_ns, end_ns)


def _inside(flow: _Flow, number: int) -> Bools:
    """Which segments entered while the period surely held, and can be told from others."""
    start_ns, end_ns = _bounds(flow, number)
    found: Bools = (
        (flow.which == number) & (flow.near.t_ns >= start_ns) & (flow.near.t_ns < end_ns) & ~flow.met.unclear
    )
    return found


def _measure_cut(flow: _Flow, number: int) -> Behaviour:
    """What entered a cut link, and what came of it; also what was under way when it was cut."""
    inside, period = _inside(flow, number), flow.periods[number]
    leaked = int((inside & flow.passed).sum())
    if period.start_ns is not None:
        due_ns = flow.earliest.release_ns
        under_way = (flow.which < number) & flow.passed & (due_ns >= period.start_ns + GUARD_NS)
        under_way &= due_ns < (NEVER if period.end_ns is None else period.end_ns - GUARD_NS)
        leaked += int((under_way & flow.earliest.swallowed).sum())
    entered = int(inside.sum())
    return Behaviour(entered, int((inside & flow.passed).sum()), leaked, Lost(cut=entered - leaked))


def _measure_up(flow: _Flow, number: int) -> Behaviour:
    inside, period = _inside(flow, number), flow.periods[number]
    settled = inside & ~_cut_off(flow, number)
    mine = settled[flow.met.near]
    here, there = flow.met.near[mine], flow.met.far[mine]
    came_ns, went_ns = flow.far.t_ns[there], flow.near.t_ns[here]
    excess_ns = came_ns - flow.expected_ns[here]
    early_ns = flow.earliest.release_ns[here] - came_ns - np.where(flow.retimed[here], CHANGE_NS, 0)
    late_ns = came_ns - flow.latest.release_ns[here]
    bar_ns = None if flow.bars_ns is None else np.ceil(flow.bars_ns(went_ns)).astype(np.int64)
    strays = _strays(flow, number)
    lost, at_risk = _losses(flow, number, inside, settled, strays)
    queued = queue_limit(period)
    return Behaviour(
        packets=int(inside.sum()),
        matched=len(here),
        leaked=0,
        lost=lost,
        at_risk=at_risk,
        crowded=0 if queued is None else int((flow.queued[here] > queued + _slack(period)).sum()),
        unclear=int(((flow.which == number) & flow.met.unclear).sum()),
        strays=strays,
        delays=_delays(came_ns - went_ns),
        excess=_delays(excess_ns),
        early_ns=int((early_ns - (0 if bar_ns is None else bar_ns)).max(initial=0)),
        late_p99_ns=weighted(late_ns - (0 if bar_ns is None else bar_ns), np.ones_like(late_ns), 99) or 0,
        spread=_spread(flow, here, there, excess_ns) if period.jitter_us else None,
        rate_part=_rate_part(flow, here, came_ns) if period.rate_bits_per_s else None,
        rate_bits_per_s=_peak_rate(flow, number),
        bar_ns=None if bar_ns is None or not len(bar_ns) else int(np.median(bar_ns)),
        sure_excess=None if bar_ns is None else _delays(excess_ns - bar_ns),
        sure_least_ns=None if bar_ns is None or not len(bar_ns) else int((came_ns - went_ns + bar_ns).min()),
    )


def _cut_off(flow: _Flow, number: int) -> Bools:
    """Which segments were under way, or nearly so, when the link was cut or the captures ended."""
    last_ns = flow.latest.release_ns + GUARD_NS
    found: Bools = flow.latest.swallowed | (last_ns >= flow.span_ns[1])
    if not flow.retimes:
        found |= _between_rates(flow, number, last_ns)
    for after in flow.periods[number + 1 :]:
        if not after.up:  # what leaves after the end of an interface's absence does leave
            until_ns = after.end_ns if after.state == "down" and after.end_ns is not None else NEVER
            found |= (last_ns >= (after.start_ns or 0)) & (flow.earliest.release_ns - GUARD_NS < until_ns)
    return found


def _between_rates(flow: _Flow, number: int, last_ns: Ints) -> Bools:
    """Which segments were under way when netem's configuration changed, or queue behind such: its delay comes
    before its rate, so which rate they meet is not told.
    """
    end_ns = flow.periods[number].end_ns
    found = np.zeros(len(last_ns), np.bool_) if end_ns is None else last_ns >= end_ns
    idle = flow.passed & (flow.which == number) & (flow.latest.begin_ns <= flow.near.t_ns)
    if number and flow.periods[number].rate_bits_per_s:
        found[: int(np.argmax(idle)) if idle.any() else len(found)] = True
    return found


def _losses(flow: _Flow, number: int, inside: Bools, settled: Bools, strays: int) -> tuple[Lost, int]:
    """What did not come through, and how many segments only chance could lose."""
    period = flow.periods[number]
    gone = ~flow.passed
    large = flow.near.wire_bytes > period.mtu_bytes + ETHERNET_BYTES
    full, perhaps_full = np.zeros_like(gone), np.zeros_like(gone)
    limit = queue_limit(period)
    if limit is not None:
        perhaps_full = flow.queued_most >= limit - _slack(period)
        full = perhaps_full & gone
    fair = settled & ~large & ~perhaps_full
    chance = max(0, int((fair & gone).sum()) - strays)
    ended = flow.latest.release_ns + GUARD_NS >= flow.span_ns[1]
    lost = Lost(
        chance=chance,
        queue=int((settled & ~large & full).sum()),
        cut=int((inside & ~settled & gone & ~ended).sum()),
        size=int((settled & large & gone).sum()),
    )
    return lost, int(fair.sum())


def _slack(period: Period) -> int:
    """By how many segments the replay's queue may differ from the emulator's: pieces, and time stamps."""
    per_byte = ns_per_byte(period)
    full_ns = per_byte * (period.mtu_bytes + ETHERNET_BYTES)
    return step(period) + 1 + int(STAMP_NS / full_ns) if full_ns else 0


def _strays(flow: _Flow, number: int) -> int:
    """Segments that came out in this period and never entered: those of offloaded frames that were cut up
    in sizes that nobody knows.
    """
    period, (start_ns, end_ns) = flow.periods[number], _bounds(flow, number)
    t_ns = flow.far.t_ns[flow.met.strays] - period.delay_us * 1000
    return int(((t_ns >= start_ns) & (t_ns < end_ns)).sum())


def _delays(delay_ns: Ints) -> Delays | None:
    ones = np.ones(len(delay_ns), np.int64)
    p50_ns, p99_ns = weighted(delay_ns, ones, 50), weighted(delay_ns, ones, 99)
    return None if p50_ns is None or p99_ns is None else Delays(int(delay_ns.min()), p50_ns, p99_ns)


def _spread(flow: _Flow, here: Ints, there: Ints, excess_ns: Ints) -> Spread | None:
    first = np.flatnonzero(np.diff(flow.far.frame[there], prepend=-1))  # the others share its jitter
    here, excess_ns = here[first], excess_ns[first]
    if not len(here):
        return None
    drawn = [draw[here] - flow.expected_ns[here] for draw in flow.draws]
    medians = [float(np.median(each)) for each in drawn]
    return Spread(
        frames=len(here),
        median_ns=int(np.median(excess_ns)),
        least_ns=int(min(medians)),
        most_ns=int(max(medians)),
        width_ns=_width(excess_ns),
        drawn_width_ns=int(np.mean([_width(each) for each in drawn])),
    )


def _width(values: Ints) -> int:
    low, high = np.percentile(values, (25, 75))
    return int(high - low)


def _rate_part(flow: _Flow, here: Ints, came_ns: Ints) -> float | None:
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


def _peak_rate(flow: _Flow, number: int) -> float | None:
    """Bits a second in the busiest second of what came out while the period held."""
    start_ns, end_ns = _bounds(flow, number)
    came = (flow.far.t_ns >= start_ns) & (flow.far.t_ns < end_ns)
    t_ns = flow.far.t_ns[came]
    if not len(t_ns):
        return None
    # Only seconds in which something came: a packet may be dated years away from the others.
    _, second = np.unique((t_ns - t_ns.min()) // NS_PER_S, return_inverse=True)
    seconds = np.bincount(second, flow.far.wire_bytes[came])
    return float(seconds.max()) * 8
