"""Replays the segments that entered a link through the configured link: when each leaves, and which find the
queue full.

The model is that of the link emulators, in the order of a real link: queue, rate, delay, jitter. A segment's
transmission begins when the previous one ends, and takes its size divided by the rate (Lindley's recursion,
computed for all segments of a period at once). If the delay has jitter, each piece takes its own extra time,
and none overtakes another unless that is configured; so the model computes the earliest and the latest
possible times, and random draws. Offloaded frames leave a rate in pieces of `PACE_NS`, and as a whole without
a rate.

State continues from one period of the configuration to the next: segments that wait when the rate changes are
rescheduled (by the relay; netem keeps their times), and a cut drops segments in flight. For a link that
follows a trace, `traced_link` gives the values at each time. Which segments crossed is an input, taken
from the packets; the replay checks whether each of them, and each of the others, was treated as configured.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from analysis.arrays import NEVER, NS_PER_S, Bools, Floats, Ints, Values, begins
from analysis.timelines.links.link_segments import LinkSide
from analysis.timelines.links.periods import Period
from analysis.timelines.links.traced_link import Curve, delays_ns, rates_in_force
from topologies.link_parameters import ETHERNET_BYTES, PACE_NS


@dataclass(frozen=True, slots=True)
class Transit:
    """When each segment's transmission begins, and when it leaves the link; parallel to the segments that
    entered.

    For segments that did not come through, these are approximate times as if they had. dropped_in_flight: in
    flight when the link was cut.
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
    alive: Bools  # scheduled, and not dropped
    busy_until_ns: int = 0
    latest_ns: int = 0
    period: Period | None = field(default=None)


def replay(
    near: LinkSide,
    passed: Bools,
    periods: Sequence[Period],
    spread: float | np.random.Generator,
    *,
    retimes: bool,
) -> Transit:
    """Return the transit of every segment.

    passed: which segments crossed (or may have). spread: the jitter of each piece: -1 the lowest, +1 the
    highest, 0 none; or a generator that draws it. retimes: whether a rate change also applies to waiting
    segments.
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


def waiting(near: LinkSide, passed: Bools, transit: Transit, shift_ns: Ints) -> Ints:
    """Return how many segments wait for the rate when each one arrives, including those before it in its own
    frame.

    shift_ns: by how much later each transmission begins than the replay says.
    """
    row = np.arange(len(near.t_ns))
    waits = transit.begin_ns > near.t_ns
    begin_ns = np.where(waits, np.maximum(transit.begin_ns + shift_ns, near.t_ns), transit.begin_ns)
    began = np.sort(begin_ns[passed])
    first = np.searchsorted(
        near.frame, near.frame, side="left"
    )  # first segment of the frame; frames are in order
    before = np.concatenate(([0], np.cumsum(passed)))
    # Transmissions begin in the order of arrival: earlier segments wait unless their transmission has begun.
    begun = np.minimum(np.searchsorted(began, near.t_ns, side="right"), before[first])
    own = before[row] - before[first]
    idle = (begun == before[first]) & (own > 0) & (transit.begin_ns[first] <= near.t_ns)
    found: Ints = before[first] - begun + own - idle
    return found


def ns_per_byte(period: Period) -> float:
    """Return the transmission time of a byte; 0 without a rate. For a traced rate, at its highest value."""
    rate = max(period.rate_trace.values) if period.rate_trace else period.rate_bits_per_s
    return 8 * NS_PER_S / rate if rate else 0.0


def rate_changes(before: Period, after: Period) -> bool:
    """Return whether the configured rate changes, for segments that may wait. Changes within a trace do not
    count.
    """
    if before.rate_bits_per_s is None or (before.rate_trace and after.rate_trace):
        return False
    if before.rate_trace or after.rate_trace:
        return True
    return before.rate_bits_per_s != after.rate_bits_per_s


def step(period: Period) -> int:
    """Return how many full-sized segments of an offloaded frame may leave the rate together."""
    per_byte = ns_per_byte(period)
    return max(1, int(PACE_NS / per_byte / (period.mtu_bytes + ETHERNET_BYTES))) if per_byte else 1


def _change(state: _State, period: Period, *, retimes: bool) -> None:
    """Apply a new period's configuration to the segments in flight."""
    before, now_ns = state.period, period.start_ns
    if before is None or now_ns is None:
        return
    if not period.up:
        in_flight = state.alive & (state.release_ns > now_ns)
        if period.state == "down":  # segments due while the interface is down are refused
            in_flight &= state.release_ns < (period.end_ns or NEVER)
        else:
            state.busy_until_ns = state.latest_ns = 0
        state.dropped_in_flight |= in_flight
        state.alive &= ~in_flight
        state.begin_ns[in_flight] = np.minimum(state.begin_ns[in_flight], now_ns)
    elif retimes and before.up and rate_changes(before, period):
        (delay_ns,) = delays_ns(before, np.array([now_ns]), 0, retimes=True).tolist()
        _retime(state, now_ns, _along(before, period, np.array(now_ns)), delay_ns)


def _along(before: Period, period: Period, now: Ints) -> Callable[[Ints], Ints]:
    """Return a function from the remaining time at the old rate to that at the new rate."""
    if not (before.rate_trace or period.rate_trace) or not period.rate_bits_per_s:
        factor = ns_per_byte(period) / ns_per_byte(before)
        return lambda left_ns: (left_ns * factor).astype(np.int64)
    old, new = Curve(before), Curve(period)
    return lambda left_ns: new.time_ns(new.bits(now) + old.bits(now + left_ns) - old.bits(now)) - now


def _retime(state: _State, now_ns: int, takes_ns: Callable[[Ints], Ints], delay_ns: int) -> None:
    """Reschedule the remainder of every transmission."""

    def later(t_ns: Ints) -> Ints:
        left_ns = np.maximum(t_ns - now_ns, 0)
        return np.where(t_ns > now_ns, now_ns + takes_ns(left_ns) + 1, t_ns)

    in_flight = np.flatnonzero(state.alive & (np.maximum(state.release_ns, state.begin_ns) > now_ns))
    state.release_ns[in_flight] = later(state.release_ns[in_flight] - delay_ns) + delay_ns
    state.begin_ns[in_flight] = later(state.begin_ns[in_flight])
    state.busy_until_ns = int(later(np.array(state.busy_until_ns)))
    state.latest_ns = int(later(np.array(state.latest_ns - delay_ns))) + delay_ns


def _admit(
    state: _State,
    near: LinkSide,
    mine: Ints,
    period: Period,
    spread: float | np.random.Generator,
    *,
    retimes: bool,
) -> None:
    """Schedule the segments that crossed in this period."""
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
    """Return begin and end of the transmission of segments that come at these times and are sent in this
    order.
    """
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
    """Do the same for netem, whose delay comes before its rate; times are without that delay."""
    enter_ns = np.maximum.accumulate(come_ns + delay_ns)
    takes, held_ns = rates_in_force(period, enter_ns, spread)
    service_ns = (sizes * takes).astype(np.int64) + 1
    finish_ns = _one_after_the_other(enter_ns + held_ns, service_ns) - delay_ns
    return finish_ns - service_ns, finish_ns


def _one_after_the_other(come: Values, service: Values) -> Values:
    """Return when each is done (Lindley's recursion)."""
    served = np.cumsum(service)
    return served + np.maximum.accumulate(come - served + service)


def _deviations(drawn: np.random.Generator, count: int, period: Period) -> Floats:
    """Return random deviations as parts of the jitter: `LinkParameters.jitter_correlation`."""
    part = period.jitter_correlation
    new, quantiles = drawn.uniform(-1, 1, count), period.jitter_quantiles
    if quantiles:
        new = np.interp((new + 1) / 2, np.linspace(0, 1, len(quantiles)), quantiles)
    if not part:
        return new
    from scipy.signal import lfilter  # noqa: PLC0415  (takes 0.7 s, and few links need it)

    return np.asarray(lfilter([1 - part], [1, -part], new))


def _pieces(near: LinkSide, mine: Ints, period: Period) -> Ints:
    """Return ascending numbers of the pieces that leave together.

    The rate splits a run of one frame's segments without losses in between.
    """
    frame = near.frame[mine]
    starts = begins(frame, mine - np.arange(len(mine)))
    if period.rate_bits_per_s:
        run = np.cumsum(starts) - 1
        position = np.arange(len(mine)) - np.flatnonzero(starts)[run]
        starts |= position % step(period) == 0
    return np.cumsum(starts) - 1


def _fill(state: _State, near: LinkSide, periods: Sequence[Period], which: Ints) -> None:
    """Estimate when segments that did not come through would have left: after all that came before them, and
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
