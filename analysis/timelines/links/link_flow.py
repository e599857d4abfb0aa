"""One direction's segments with their replays through the configured link; the basis of all its measures.

A segment that cannot be distinguished from others may or may not have come through, and a damaged one may be
another. So there are two replays: the *earliest* uses the segments that surely crossed, the *latest* all
that may have. With jitter there
are also random draws, and the expected time is their mean.

Segments that did not come through were in flight when the link was cut, dropped by a full queue, larger than
the MTU, or lost at random. If the replay cannot determine whether the queue was full, a segment does not
count for random loss, whether it arrived or not. So random loss is k losses among n segments that nothing
else could affect.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.arrays import NEVER, Bools, Floats, Ints
from analysis.timelines.links.link_replay import Transit, ns_per_byte, rate_changes, replay, step, waiting
from analysis.timelines.links.link_segments import LinkSide, SegmentMatch, match, with_copies
from analysis.timelines.links.periods import Period
from analysis.timelines.links.traced_link import Curve
from topologies.link_parameters import ETHERNET_BYTES, queue_limit_packets

GUARD_NS = 10_000_000
"""A change takes effect, and ends, within 10 ms of its applied time."""
DRAWS = 16
STAMP_NS = 200_000
"""A queue's length is computed from time stamps; those of capture and link emulator may differ by this
much.
"""


@dataclass(frozen=True, slots=True)
class Flow:
    """All of one direction's segments, replayed."""

    near: LinkSide
    far: LinkSide
    met: SegmentMatch
    copies: Bools  # near segments that represent the second arrival of the one before
    periods: Sequence[Period]
    span_ns: tuple[int, int]
    which: Ints  # period in which each segment entered
    passed: Bools
    sure: Bools  # of these, those that are known by all parts of their key
    earliest: Transit
    latest: Transit
    expected_ns: Ints
    queued: Ints  # lower bound of the queue: without the unclear segments
    queued_most: Ints  # upper bound: with them
    retimed: Bools  # segments that wait while the rate changes, or behind such
    draws: list[Ints]
    error_bounds_ns: Callable[[Ints], Floats] | None
    retimes: bool


def replayed(
    near: LinkSide,
    far: LinkSide,
    periods: Sequence[Period],
    span_ns: tuple[int, int],
    error_bounds_ns: Callable[[Ints], Floats] | None,
    *,
    retimes: bool,
) -> Flow:
    """Match both sides' segments and replay the near one's; parameters as for `link_behaviour.measure`."""
    near, met, copies = with_copies(near, far, match(near, far))
    passed = np.zeros(len(near.t_ns), np.bool_)
    passed[met.near] = True
    sure = passed.copy()
    sure[met.near[(near.key[met.near] != far.key[met.far]).any(axis=1)]] = False
    perhaps = passed | met.unclear
    earliest = replay(near, sure, periods, -1, retimes=retimes)
    latest = replay(near, perhaps, periods, 1, retimes=retimes)
    draws = []
    if any(period.jitter_us for period in periods):
        chance = np.random.default_rng(0)  # the same draws for the same packets
        draws = [replay(near, perhaps, periods, chance, retimes=retimes).release_ns for _ in range(DRAWS)]
    expected_ns = np.mean(draws, axis=0).astype(np.int64) if draws else latest.release_ns
    starts = np.array([period.start_ns or 0 for period in periods])
    retimed = _retimed(near, perhaps, periods, latest)
    shift_ns = np.where(retimed, GUARD_NS, 0)  # their rate changed up to this much earlier or later
    return Flow(
        near=near,
        far=far,
        met=met,
        copies=copies,
        periods=periods,
        span_ns=span_ns,
        which=np.searchsorted(starts, near.t_ns, side="right") - 1,
        passed=passed,
        sure=sure,
        earliest=earliest,
        latest=latest,
        expected_ns=expected_ns,
        queued=waiting(near, sure, earliest, -shift_ns),
        queued_most=waiting(near, perhaps, latest, shift_ns),
        retimed=retimed,
        draws=draws,
        error_bounds_ns=error_bounds_ns,
        retimes=retimes,
    )


def _retimed(near: LinkSide, passed: Bools, periods: Sequence[Period], transit: Transit) -> Bools:
    """Return which segments wait for the rate while it changes, or behind such."""
    found = np.zeros(len(near.t_ns), np.bool_)
    idle_ns = near.t_ns[passed & (transit.begin_ns <= near.t_ns)]
    for before, after in itertools.pairwise(periods):
        if after.start_ns is None or not rate_changes(before, after):
            continue
        next_idle = np.searchsorted(idle_ns, after.start_ns)
        end_ns = idle_ns[next_idle] if next_idle < len(idle_ns) else NEVER
        found |= (transit.release_ns > after.start_ns) & (near.t_ns < end_ns)
    return found


def bounds(flow: Flow, number: int) -> tuple[int, int]:
    """Return the times between which the period surely held."""
    period, (start_ns, end_ns) = flow.periods[number], flow.span_ns
    if period.start_ns is not None:
        start_ns = max(start_ns, period.start_ns + GUARD_NS)
    if period.end_ns is not None:
        end_ns = min(end_ns, period.end_ns - GUARD_NS)
    return start_ns, max(start_ns, end_ns)


def inside_of(flow: Flow, number: int) -> Bools:
    """Return which segments entered while the period surely held, and can be identified."""
    start_ns, end_ns = bounds(flow, number)
    found: Bools = (
        (flow.which == number) & (flow.near.t_ns >= start_ns) & (flow.near.t_ns < end_ns) & ~flow.met.unclear
    )
    return found


@dataclass(frozen=True, slots=True)
class Losses:
    """Segments that did not come through, by cause."""

    chance: int = 0
    queue: int = 0
    cut: int = 0
    size: int = 0


def losses(flow: Flow, number: int, inside: Bools, settled: Bools, strays: int) -> tuple[Losses, Bools]:
    """Return the losses, and which segments only random loss could affect."""
    period = flow.periods[number]
    gone = ~flow.passed
    large = larger_than_mtu(flow, number)
    full, perhaps_full = np.zeros_like(gone), np.zeros_like(gone)
    limit = queue_limit_packets(period)
    if limit is not None:
        perhaps_full = flow.queued_most >= limit - slack(period)
        full = perhaps_full & gone
    fair = settled & ~large & ~perhaps_full & ~flow.copies
    chance = max(0, int((fair & gone).sum()) - strays)
    ended = flow.latest.release_ns + GUARD_NS >= flow.span_ns[1]
    lost = Losses(
        chance=chance,
        queue=int((settled & ~large & full).sum()),
        cut=int((inside & ~settled & gone & ~ended).sum()),
        size=int((settled & large & gone).sum()),
    )
    return lost, fair


def larger_than_mtu(flow: Flow, number: int) -> Bools:
    """Return which segments a period's MTU does not allow."""
    return flow.near.wire_bytes > flow.periods[number].mtu_bytes + ETHERNET_BYTES


def cut_off(flow: Flow, number: int) -> Bools:
    """Return which segments were in flight, or nearly so, when the link was cut or the captures ended."""
    last_ns = flow.latest.release_ns + GUARD_NS
    found: Bools = flow.latest.dropped_in_flight | (last_ns >= flow.span_ns[1])
    if not flow.retimes:
        found |= _between_rates(flow, number, last_ns)
    for after in flow.periods[number + 1 :]:
        if not after.up:  # segments due after the interface is back are sent
            until_ns = after.end_ns if after.state == "down" and after.end_ns is not None else NEVER
            found |= (last_ns >= (after.start_ns or 0)) & (flow.earliest.release_ns - GUARD_NS < until_ns)
            found |= ~flow.passed & _may_have_waited(flow, number, after.start_ns or 0)
    return found


def _may_have_waited(flow: Flow, number: int, cut_ns: int) -> Bools:
    """Return which segments of this period may have been queued when the link was cut, if its rate follows a
    trace.

    A cut removes an unknown part of the queue, so the length of the queue is unknown, too.
    """
    t_ns, limit = flow.near.t_ns, queue_limit_packets(flow.periods[number])
    before = [period for period in flow.periods[number:] if (period.start_ns or 0) < cut_ns and period.up]
    if limit is None or not any(period.rate_trace for period in before):
        return np.zeros(len(t_ns), np.bool_)
    bits = np.zeros(len(t_ns))
    longest_us = max(period.delay_us_most + period.jitter_us for period in before)
    gone_ns = cut_ns - longest_us * 1000 - GUARD_NS  # segments that leave the queue later are still in flight
    for period in before:
        if not period.rate_bits_per_s:
            return np.zeros(len(t_ns), np.bool_)
        curve, end_ns = Curve(period), min(gone_ns, period.end_ns or gone_ns)
        start_ns = np.clip(t_ns, min(period.start_ns or 0, end_ns), end_ns)
        bits += curve.bits(np.full(len(t_ns), end_ns)) - curve.bits(start_ns)
    segment_bytes = flow.periods[number].mtu_bytes + ETHERNET_BYTES
    return bits <= 8 * (limit + slack(flow.periods[number]) + 1) * segment_bytes


def _between_rates(flow: Flow, number: int, last_ns: Ints) -> Bools:
    """Return which segments were in flight when netem's configuration changed, or queue behind such.

    In netem, delay comes before rate, so the rate that applies to them is unknown.
    """
    end_ns = flow.periods[number].end_ns
    found = np.zeros(len(last_ns), np.bool_) if end_ns is None else last_ns >= end_ns
    idle = flow.passed & (flow.which == number) & (flow.latest.begin_ns <= flow.near.t_ns)
    if number and flow.periods[number].rate_bits_per_s:
        found[: int(np.argmax(idle)) if idle.any() else len(found)] = True
    return found


def strays_of(flow: Flow, number: int) -> Ints:
    """Return the segments, on the far side, that left the link in this period without having entered.

    They belong to offloaded frames that were split in unknown sizes, or are damaged beyond recognition.
    """
    period, (start_ns, end_ns) = flow.periods[number], bounds(flow, number)
    t_ns = flow.far.t_ns[flow.met.strays] - period.delay_us * 1000
    return flow.met.strays[(t_ns >= start_ns) & (t_ns < end_ns)]


def slack(period: Period) -> int:
    """Return by how many segments the replay's queue may differ from the emulator's: pieces, and time
    stamps.
    """
    per_byte = ns_per_byte(period)
    full_ns = per_byte * (period.mtu_bytes + ETHERNET_BYTES)
    return step(period) + 1 + int(STAMP_NS / full_ns) if full_ns else 0
