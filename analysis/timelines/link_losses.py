"""What of one direction's segments did not come through, and why: under way when the link was cut, dropped by
a full queue, larger than the MTU, or lost by chance.

Where the replay cannot tell whether the queue was full, a segment says nothing about chance, whether it came
or not. So chance is k losses among n segments, nothing else among them.
"""

from dataclasses import dataclass

import numpy as np

from analysis.timelines.arrays import Bools, Ints
from analysis.timelines.link_flow import GUARD_NS, Flow, bounds
from analysis.timelines.link_replay import ns_per_byte, queue_limit, step
from analysis.timelines.periods import Period
from analysis.timelines.pieces import NEVER
from topologies.link_parameters import ETHERNET_BYTES

STAMP_NS = 200_000
"""A queue's length is told from time stamps; by so much those of capture and link emulator may differ."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Segments that did not come through, and why."""

    chance: int = 0
    queue: int = 0
    cut: int = 0
    size: int = 0


def losses(flow: Flow, number: int, inside: Bools, settled: Bools, strays: int) -> tuple[Lost, int]:
    """What did not come through, and how many segments only chance could lose."""
    period = flow.periods[number]
    gone = ~flow.passed
    large = flow.near.wire_bytes > period.mtu_bytes + ETHERNET_BYTES
    full, perhaps_full = np.zeros_like(gone), np.zeros_like(gone)
    limit = queue_limit(period)
    if limit is not None:
        perhaps_full = flow.queued_most >= limit - slack(period)
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


def cut_off(flow: Flow, number: int) -> Bools:
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


def _between_rates(flow: Flow, number: int, last_ns: Ints) -> Bools:
    """Which segments were under way when netem's configuration changed, or queue behind such: its delay comes
    before its rate, so which rate they meet is not told.
    """
    end_ns = flow.periods[number].end_ns
    found = np.zeros(len(last_ns), np.bool_) if end_ns is None else last_ns >= end_ns
    idle = flow.passed & (flow.which == number) & (flow.latest.begin_ns <= flow.near.t_ns)
    if number and flow.periods[number].rate_bits_per_s:
        found[: int(np.argmax(idle)) if idle.any() else len(found)] = True
    return found


def strays_of(flow: Flow, number: int) -> int:
    """Segments that came out in this period and never entered: those of offloaded frames that were cut up
    in sizes that nobody knows.
    """
    period, (start_ns, end_ns) = flow.periods[number], bounds(flow, number)
    t_ns = flow.far.t_ns[flow.met.strays] - period.delay_us * 1000
    return int(((t_ns >= start_ns) & (t_ns < end_ns)).sum())


def slack(period: Period) -> int:
    """By how many segments the replay's queue may differ from the emulator's: pieces, and time stamps."""
    per_byte = ns_per_byte(period)
    full_ns = per_byte * (period.mtu_bytes + ETHERNET_BYTES)
    return step(period) + 1 + int(STAMP_NS / full_ns) if full_ns else 0
