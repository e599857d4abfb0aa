"""Whether every WAN link did what it was configured to do, from the packets at both sides of its middle.

One direction of one link is measured at a time; `judge` holds what it did against the configuration. Limits,
each for one direction and period:

- no packet is early: the least delay is not below the configured one less the jitter;
- what packets take beyond the delay and the time that the rate makes them wait (`link_delays`) is at most 1
  ms (or 2 % of the delay) in the median and 5 ms (or 10 %) at p99; jitter is allowed for;
- loss lies within 3 standard deviations of the configured one; a link busier than half its rate may drop
  more, since its queue is finite;
- the busiest second carries at most 5 % more than the rate;
- nothing crosses while the link is cut.

Where the two sides are on different machines a packet's delay has the bar of their clocks: only what is sure
whatever the clocks showed is held against a link, and that the bar is wider than a limit is said.

A period without packets proves nothing: its figures are null, with a reason, and it counts as valid.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from analysis.timelines import schemas
from analysis.timelines.arrays import Ints
from analysis.timelines.facts import Facts
from analysis.timelines.link_delays import Behaviour, Floats, measure, side
from analysis.timelines.periods import Period, Way
from analysis.timelines.pieces import NEVER

MEDIAN_NS, MEDIAN_PART = 1_000_000, 0.02
P99_NS, P99_PART = 5_000_000, 0.10
BUSY_PART = 0.5
RATE_PART = 1.05
LOSS_DEVIATIONS = 3.0
GATEWAY = "gateway"
EARLY_NS = 50_000
"""The two captures of a link stamp one after the other; by so much a packet may seem early."""


def measured(way: Way, near: pa.Table, far: pa.Table, facts: Facts) -> pa.Table:
    """`schemas.FIDELITY` of one direction, from its packets (`crossings.sides`)."""
    periods = facts.periods[way]
    mtu_bytes = periods[0].mtu_bytes
    there, here = side(near, mtu_bytes), side(far, mtu_bytes)
    t_ns = np.concatenate((there.t_ns, here.t_ns))
    span_ns = (int(t_ns.min(initial=NEVER)), facts.drained_ns or int(t_ns.max(initial=0)))
    return rows_of(way, facts, measure(there, here, periods, span_ns, _bars(way, facts)))


def _bars(way: Way, facts: Facts) -> Callable[[Ints], Floats] | None:
    """By how much delays between the two sides may be wrong; None where one clock measured them."""
    hop = next((hop for hop, its_way in facts.link_of.items() if its_way == way), None)
    if hop is None:
        return None
    ends = [facts.of_region(region, GATEWAY) for region in hop]
    if all(facts.clocks.together(one, other) for one, other in zip(*ends, strict=True)):
        return None
    return partial(facts.clocks.bars_ns, ends[0], ends[1])


def rows_of(way: Way, facts: Facts, behaviours: list[Behaviour]) -> pa.Table:
    """`schemas.FIDELITY` for one direction's periods and what it did in each."""
    rows = []
    for period, behaviour in zip(facts.periods[way], behaviours, strict=True):
        problems, note = judge(period, behaviour)
        delays, excess = behaviour.delays, behaviour.excess
        rows.append(
            {
                "link": way[0],
                "direction": way[1],
                "from_s": None if period.start_ns is None else facts.seconds(period.start_ns),
                "to_s": None if period.end_ns is None else facts.seconds(period.end_ns),
                "state": period.state,
                "configured_delay_ms": period.delay_us / 1e3,
                "delay_min_ms": delays and delays.min_ns / 1e6,
                "delay_p50_ms": delays and delays.p50_ns / 1e6,
                "delay_p99_ms": delays and delays.p99_ns / 1e6,
                "excess_p50_ms": excess and excess.p50_ns / 1e6,
                "excess_p99_ms": excess and excess.p99_ns / 1e6,
                "bar_ms": behaviour.clocks and behaviour.clocks.bar_ns / 1e6,
                "configured_loss": period.loss,
                "loss": behaviour.loss,
                "configured_rate_bits_per_s": period.rate_bits_per_s,
                "rate_bits_per_s": behaviour.rate_bits_per_s,
                "packets": behaviour.packets,
                "matched": behaviour.matched,
                "leaked": behaviour.leaked,
                "valid": not problems,
                "reason": "; ".join(problems) or note,
            }
        )
    return pa.Table.from_pylist(rows, schema=schemas.FIDELITY)


def judge(period: Period, did: Behaviour) -> tuple[list[str], str | None]:
    """What was wrong with a period, and what could not be said about it."""
    if not period.up:
        problems = [f"{did.leaked} packets crossed while the link was {period.state}"] if did.leaked else []
        return problems, None if did.packets else "no packet tried to cross"
    if did.delays is None:
        silent = did.packets > 0 and period.loss < 1
        return (["no packet came out"] if silent else []), None if did.packets else "no packets"
    return [*_delay_problems(period, did), *_volume_problems(period, did)], _vague(period, did)


def _vague(period: Period, did: Behaviour) -> str | None:
    """That the clocks are not known as well as the delay is to be."""
    wanted_ns = _late_ns(period)
    if did.clocks is None or did.clocks.bar_ns <= wanted_ns:
        return None
    return (
        f"its clocks are known to {did.clocks.bar_ns / 1e6:.3f} ms only: nobody can tell whether its delay is"
        f" right to {wanted_ns / 1e6:.3f} ms"
    )


def _late_ns(period: Period) -> float:
    """So much later than asked for packets may be in the median."""
    return max(MEDIAN_NS, MEDIAN_PART * period.delay_us * 1000)


def _delay_problems(period: Period, did: Behaviour) -> list[str]:
    delay_ns, jitter_ns = period.delay_us * 1000, period.jitter_us * 1000
    delays, excess = did.delays, did.excess
    if delays is None or excess is None:
        return []
    least_ns, bar = delays.min_ns, ""
    if did.clocks is not None:  # what is sure, whatever the clocks showed
        least_ns, excess = did.clocks.least_ns, did.clocks.excess
        bar = f", and the clocks leave open only {did.clocks.bar_ns / 1e6:.3f} ms"
    problems = []
    if least_ns < 0:
        problems.append(f"a packet came {-delays.min_ns / 1e6:.3f} ms before it left{bar}")
    elif least_ns < delay_ns - jitter_ns - EARLY_NS:
        problems.append(f"a packet took only {delays.min_ns / 1e6:.3f} ms{bar}")
    if excess.p50_ns > _late_ns(period) + jitter_ns / 2:
        problems.append(f"median {excess.p50_ns / 1e6:.2f} ms late")
    if excess.p99_ns > max(P99_NS, P99_PART * delay_ns) + jitter_ns:
        problems.append(f"p99 {excess.p99_ns / 1e6:.2f} ms late")
    return problems


def _volume_problems(period: Period, did: Behaviour) -> list[str]:
    problems = []
    rate, loss = period.rate_bits_per_s, did.loss or 0.0
    busy = rate is not None and (did.rate_bits_per_s or 0.0) > BUSY_PART * rate
    deviation = math.sqrt(max(period.loss * (1 - period.loss), 1 / did.packets) / did.packets)
    if abs(loss - period.loss) > LOSS_DEVIATIONS * deviation and not (busy and loss > period.loss):
        problems.append(f"loss {loss:.3%}")
    if rate and (did.rate_bits_per_s or 0.0) > RATE_PART * rate:
        problems.append(f"rate {did.rate_bits_per_s or 0.0:.3g} bit/s")
    return problems
