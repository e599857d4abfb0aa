"""What the configured link would do to the very segments that entered it: when each would leave, and which
would find its queue full.

The model is that of the link emulators, in the order of a real link: queue, rate, delay, jitter. A segment's
transmission begins when that of the one before it is over, and takes its size divided by the rate (Lindley's
recursion, computed for all segments of a period at once). Where the delay has jitter, each piece takes an
extra time of its own, and none overtakes another unless that is configured; so the model is asked for the
earliest and the latest that are possible, and for draws by chance. Offloaded frames leave a rate in pieces of
`PACE_NS`, and without a rate whole.

State goes on from one period of the configuration to the next: what waits when the rate changes is timed
anew (by the relay; netem keeps the times it gave), and a cut swallows what is under way. Of a link that
follows a trace, `traced_link` says what held when. Which segments came through is told from outside, from
the packets; what is asked here is whether each of them, and each of the others, was treated as configured.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from analysis.timelines.arrays import Bools, Floats, Ints
from analysis.timelines.links.link_segments import Side
from analysis.timelines.links.periods import Period
from analysis.timelines.links.traced_link import Curve, delays_ns, rates_in_force
from topologies.link_parameters import ETHERNET_BYTES, PACE_NS, LinkParameters, queue_limit_packets

NS_PER_S = 1_000_000_000
Values = TypeVar("Values", Ints, Floats)


@dataclass(frozen=True, slots=True)
class Transit:
    """When each segment's transmission would begin, and when it would leave the link; parallel to those that
    entered. Of those that did not come through it says when one there would have done so, roughly.

    swallowed: under way when the link was cut.
    """

    begin_ns: Ints
    release_ns: Ints
    dropped_in_flight: Bools


@dataclass(slots=True)
class _State:
    """The segments in flight from one period to the next."""

    begin_ns: Ints
    release_ns: Ints
    dropped_in_flight: Bools
    alive: Bools  # given a time, and not swallowed
    busy_until_ns: int = 0
    latest_ns: int = 0
    period: Period | None = field(default=None)


def replay(
    near: Side,
    passed: Bools,
    periods: Sequence[Period],
    spread: float | np.random.Generator,
    *,
    retimes: bool,
) -> Transit:
    """The transit of every segment.

    passed: which came through (or may have). spread: of the jitter, what each piece gets: -1 the least, +1
    the most, 0 none; or what draws it. retimes: whether a changed rate is for what waits already.
    """
    count = len(near.t_ns)
    state = _State(
        np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, bool), np.zeros(count, bool)
    )
    starts = [period.start_ns or 0 for period in periods]
    which = np.searchsorted(np.array(starts), near.t_ns, side="right") - 1
    for number, period in enumerate(periods):
        _change(state, period, retimes=retimes)
        mine = np.flatnonzero(passed & (which == number))
        if period.up and len(mine):
            _admit(state, near, mine, period, spread, retimes=retimes)
        state.period = period
    _fill(state, near, periods, which)
    return Transit(state.begin_ns, state.release_ns, state.dropped_in_flight)


def waiting(near: Side, passed: Bools, transit: Transit) -> Ints:
    """How many segments wait for the rate when each one comes, those before it in its own frame included."""
    row = np.arange(len(near.t_ns))
    began = np.sort(transit.begin_ns[passed])
    first = np.searchsorted(near.frame, near.frame, side="left")  # of the frame; frames are in order
    before = np.concatenate(([0], np.cumsum(passed)))
    # Transmissions begin in the order of arrival, so of those before it as many as have begun do not wait.
    begun = np.minimum(np.searchsorted(began, near.t_ns, side="right"), before[first])
    own = before[row] - before[first]
    idle = (begun == before[first]) & (own > 0) & (transit.begin_ns[first] <= near.t_ns)
    found: Ints = before[first] - begun + own - idle
    return found


def queue_limit(period: Period) -> int | None:
    """How many segments may wait for the period's rate; None without one."""
    return queue_limit_packets(
        LinkParameters(
            delay_us=period.delay_us,
            rate_bits_per_s=period.rate_bits_per_s,
            queue_packets=period.queue_packets,
            mtu_bytes=period.mtu_bytes,
        )
    )


def ns_per_byte(period: Period) -> float:
    """What the rate takes for a byte; 0 without one. Of a rate over time, the highest."""
    rate = max(period.rate_trace.values) if period.rate_trace else period.rate_bits_per_s
    return 8 * NS_PER_S / rate if rate else 0.0


def rate_changes(before: Period, after: Period) -> bool:
    """Whether a rate changes by which something may wait; not that it goes on to vary by its trace."""
    if before.rate_bits_per_s is None or (before.rate_trace and after.rate_trace):
        return False
    if before.rate_trace or after.rate_trace:
        return True
    return before.rate_bits_per_s != after.rate_bits_per_s


def step(period: Period) -> int:
    """How many full-sized segments of an offloaded frame may leave the rate together."""
    per_byte = ns_per_byte(period)
    return max(1, int(PACE_NS / per_byte / (period.mtu_bytes + ETHERNET_BYTES))) if per_byte else 1


def _change(state: _State, period: Period, *, retimes: bool) -> None:
    """Apply a new period's configuration to what is in flight."""
    before, now_ns = state.period, period.start_ns
    if before is None or now_ns is None:
        return
    if not period.up:
        under_way = state.alive & (state.release_ns > now_ns)
        if period.state == "down":  # what is due while the interface is down is refused
            under_way &= state.release_ns < (period.end_ns or np.iinfo(np.int64).max)
        else:
            state.busy_until_ns = state.latest_ns = 0
        state.dropped_in_flight |= under_way
        state.alive &= ~under_way
        state.begin_ns[under_way] = np.minimum(state.begin_ns[under_way], now_ns)
    elif retimes and before.up and rate_changes(before, period):
        (delay_ns,) = delays_ns(before, np.array([now_ns]), 0, retimes=True).tolist()
        _retime(state, now_ns, _along(before, period, np.array(now_ns)), delay_ns)


def _along(before: Period, period: Period, now: Ints) -> Callable[[Ints], Ints]:
    """How long what took so long by the rate before takes by the present one."""
    if not (before.rate_trace or period.rate_trace) or not period.rate_bits_per_s:
        factor = ns_per_byte(period) / ns_per_byte(before)
        return lambda left_ns: (left_ns * factor).astype(np.int64)
    old, new = Curve(before), Curve(period)
    return lambda left_ns: new.time_ns(new.bits(now) + old.bits(now + left_ns) - old.bits(now)) - now


def _retime(state: _State, now_ns: int, takes_ns: Callable[[Ints], Ints], delay_ns: int) -> None:
    """What is left of every transmission takes so long."""

    def later(t_ns: Ints) -> Ints:
        left_ns = np.maximum(t_ns - now_ns, 0)
        return np.where(t_ns > now_ns, now_ns + takes_ns(left_ns) + 1, t_ns)

    under_way = np.flatnonzero(state.alive & (np.maximum(state.release_ns, state.begin_ns) > now_ns))
    state.release_ns[under_way] = later(state.release_ns[under_way] - delay_ns) + delay_ns
    state.begin_ns[under_way] = later(state.begin_ns[under_way])
    state.busy_until_ns = int(later(np.array(state.busy_until_ns)))
    state.latest_ns = int(later(np.array(state.latest_ns - delay_ns))) + delay_ns


def _admit(
    state: _State,
    near: Side,
    mine: Ints,
    period: Period,
    spread: float | np.random.Generator,
    *,
    retimes: bool,
) -> None:
    """Give the segments that came through in this period their times."""
    t_ns, piece = near.t_ns[mine], _pieces(near, mine, period)
    starts = np.flatnonzero(np.diff(piece, prepend=-1))
    begin_ns = finish_ns = t_ns[starts]
    delay_ns = delays_ns(period, t_ns[starts], spread, retimes=retimes)
    if period.rate_bits_per_s:
        sizes = np.add.reduceat(near.wire_bytes[mine], starts)
        sent = _sent_by_steps if period.rate_trace and not retimes else _sent
        come_ns = np.maximum(t_ns[starts], state.busy_until_ns)
        begin_ns, finish_ns = sent(period, come_ns, sizes, delay_ns, spread)
        state.busy_until_ns = int(finish_ns[-1])
    release_ns = finish_ns + delay_ns
    if period.jitter_us:
        extra = (
            _deviations(spread, len(starts), period) if isinstance(spread, np.random.Generator) else spread
        )
        release_ns = release_ns + np.trunc(extra * np.float64(period.jitter_us * 1000)).astype(np.int64)
        release_ns = np.maximum(finish_ns, release_ns)
    if not period.reorder:
        release_ns = np.maximum(np.maximum.accumulate(release_ns), state.latest_ns)
        state.latest_ns = int(release_ns[-1])
    state.begin_ns[mine], state.release_ns[mine] = begin_ns[piece], release_ns[piece]
    state.alive[mine] = True


def _sent(period: Period, come_ns: Ints, sizes: Ints, delay_ns: Ints, spread: object) -> tuple[Ints, Ints]:
    """When the transmission begins and ends of what comes at these times, and is sent in this order."""
    if period.rate_trace is None:
        service_ns = (sizes * ns_per_byte(period)).astype(np.int64) + 1
        finish_ns = _one_after_the_other(come_ns, service_ns)
        return finish_ns - service_ns, finish_ns
    curve = Curve(period)
    bits = np.multiply(sizes, 8, dtype=np.float64)
    finish_ns = curve.time_ns(_one_after_the_other(curve.bits(come_ns), bits)) + 1
    return np.maximum(come_ns, np.concatenate((come_ns[:1], finish_ns[:-1]))), finish_ns


def _sent_by_steps(
    period: Period, come_ns: Ints, sizes: Ints, delay_ns: Ints, spread: object
) -> tuple[Ints, Ints]:
    """The same under netem, whose delay comes before its rate; in times without that delay."""
    enter_ns = np.maximum.accumulate(come_ns + delay_ns)
    takes, held_ns = rates_in_force(period, enter_ns, spread)
    service_ns = (sizes * takes).astype(np.int64) + 1
    finish_ns = _one_after_the_other(enter_ns + held_ns, service_ns) - delay_ns
    return finish_ns - service_ns, finish_ns


def _one_after_the_other(come: Values, service: Values) -> Values:
    """When each is done (Lindley's recursion)."""
    served = np.cumsum(service)
    done: Values = served + np.maximum.accumulate(come - served + service)
    return done


def _deviations(drawn: np.random.Generator, count: int, period: Period) -> Floats:
    """Of so many segments, as parts of the jitter: `LinkParameters.jitter_correlation`."""
    part = period.jitter_correlation
    new = drawn.uniform(-1, 1, count)
    if not part:
        return new
    from scipy.signal import lfilter  # noqa: PLC0415  (takes 0.7 s, and few links need it)

    return np.asarray(lfilter([1 - part], [1, -part], new))


def _pieces(near: Side, mine: Ints, period: Period) -> Ints:
    """Which segments leave together: numbers that ascend. A run of one frame's segments, none lost between,
    is cut up by the rate.
    """
    frame = near.frame[mine]
    begins = np.concatenate(([True], (np.diff(frame) != 0) | (np.diff(mine) != 1)))
    if period.rate_bits_per_s:
        run = np.cumsum(begins) - 1
        position = np.arange(len(mine)) - np.flatnonzero(begins)[run]
        begins |= position % step(period) == 0
    return np.cumsum(begins) - 1


def _fill(state: _State, near: Side, periods: Sequence[Period], which: Ints) -> None:
    """Roughly when those that did not come through would have left: after all that came before them, and
    not in a pause of their trace.
    """
    rest = ~state.alive & ~state.dropped_in_flight
    delay_ns = np.array([1000 * (period.delay_us_most + period.jitter_us) for period in periods])[which]
    before_ns = np.maximum.accumulate(np.where(state.alive, state.release_ns, 0)) if len(rest) else delay_ns
    release_ns = np.maximum(near.t_ns + delay_ns, before_ns)
    for number, period in enumerate(periods):
        mine = np.flatnonzero(rest & (which == number))
        if period.rate_trace and len(mine):
            curve, come_ns = Curve(period), np.maximum(near.t_ns[mine], before_ns[mine] - delay_ns[mine])
            sent_ns = curve.time_ns(curve.bits(come_ns) + 8.0 * near.wire_bytes[mine])
            release_ns[mine] = np.maximum(release_ns[mine], sent_ns + delay_ns[mine])
    state.release_ns[rest] = release_ns[rest]
    state.begin_ns[rest] = near.t_ns[rest]
