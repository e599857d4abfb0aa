"""Checks that every WAN link behaved as configured, from the packets at both sides of its emulator.

Each direction of a link is measured separately (`link_behaviour`); `judge` compares each period with the
configuration. Limits:

- no packet arrives before the configured link could have delivered it;
- packets take at most 0.5 ms more than the configured link in the median, and 5 ms (or 10 % of the delay) at
  p99; with jitter, the median is compared with that of random draws, and so is the spread;
- the rate is within 1 %, if it was used up for long enough to measure it;
- random loss leaves the configured loss within its confidence interval (Clopper-Pearson, exact); losses by a
  full queue or a cut do not count, and no more packets wait than the queue may hold; the same interval holds
  for packets that came twice, and for those that came with a wrong checksum;
- nothing crosses while the link is cut.

A period is *proven* if its packets show all that, *violated* if they show the contrary, and *unproven* if
they show neither: there were no or too few packets, or the two sides are on different machines and their
clocks are not known well enough. Delays then have the clocks' error bound, and a link is violated only if it
is so for all possible clock errors.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import log, sqrt

import numpy as np
import pyarrow as pa

from analysis.arrays import NEVER, Floats, Ints, ints
from analysis.intervals import rate_interval
from analysis.timelines import schemas
from analysis.timelines.links.link_behaviour import (
    EARLY_NS,
    LATE_NS,
    Behaviour,
    JitterSpread,
    SegmentShare,
    measure,
)
from analysis.timelines.links.link_flow import GUARD_NS
from analysis.timelines.links.link_segments import link_side
from analysis.timelines.links.periods import LinkDirection, Period, SelectedPackets
from analysis.timelines.run_metadata import RunMetadata

PROVEN, VIOLATED, UNPROVEN = "proven", "violated", "unproven"

MEDIAN_NS = LATE_NS
P99_NS, P99_PART = 5_000_000, 0.10
RATE_PART = 0.01
CHANCE = 1e-4
"""Probability that a link with the configured losses or jitter is reported as violated."""
UNSEEN_PART = 0.5
"""At most this part of damaged packets is not seen as damaged if bits of headers are flipped as well: of a
TCP segment's 66 bytes of headers, no checksum covers 12, and 14 lead it elsewhere.
"""
BLURRED = "bursts of loss cannot be distinguished from the drops of its full queue"
AS_MEASURED = ("loss", "rate_bits_per_s", "rate_part", "packets", "matched", "leaked", "strays")
"""Columns that are fields of `Behaviour`."""
ENOUGH = 10
"""Fewest packets that measure a delay."""
DISTANCE_PART, DISTANCE_MARGIN = 1.75, 0.01
"""The largest Kolmogorov distance of the delays from all draws: this many times that of the farthest of 16
draws, or if that is more, what independent delays exceed with probability `CHANCE` (Massart, Annals of
Probability 18, 1990). The margin is for late packets.
"""
WIDTH_PART, WIDTH_FRAMES = 0.25, 300
"""A spread needs this many frames; it must be within this part of the configured one."""


@dataclass(frozen=True, slots=True)
class PeriodVerdict:
    """The verdict on a period, and why it is not proven."""

    state: str
    reason: str | None = None


def measure_direction(
    direction: LinkDirection, near: pa.Table, far: pa.Table, metadata: RunMetadata
) -> pa.Table:
    """Return `schemas.FIDELITY` of one direction, from its packets (`traversals.sides`): those that faults
    select, each selection by its own configuration, and all others.
    """
    t_ns = np.concatenate((ints(near, "t_ns"), ints(far, "t_ns")))
    span_ns = (int(t_ns.min(initial=NEVER)), metadata.drained_ns or int(t_ns.max(initial=0)))
    measured = []
    for selected in metadata.selected.get(direction, ()):
        (mine, near), (its, far) = (_split(side, selected) for side in (near, far))
        measured.append(_measure(direction, (mine, its), span_ns, metadata, selected))
    return pa.concat_tables([_measure(direction, (near, far), span_ns, metadata, None), *measured])


def _split(packets: pa.Table, selected: SelectedPackets) -> tuple[pa.Table, pa.Table]:
    """Return the selected packets, and the others."""
    among = selected.among(packets)
    return packets.filter(pa.array(among)), packets.filter(pa.array(~among))


def _measure(
    direction: LinkDirection,
    sides: tuple[pa.Table, pa.Table],
    span_ns: tuple[int, int],
    metadata: RunMetadata,
    selected: SelectedPackets | None,
) -> pa.Table:
    periods = metadata.periods[direction] if selected is None else selected.periods
    there, here = (link_side(side, periods[0].interface_mtu_bytes) for side in sides)
    errors, retimes = _error_bounds_ns(direction, metadata), metadata.links_kind != "netem"
    behaviours = measure(there, here, periods, span_ns, errors, retimes=retimes)
    return rows_of(direction, metadata, periods, behaviours, None if selected is None else selected.name)


def _error_bounds_ns(direction: LinkDirection, metadata: RunMetadata) -> Callable[[Ints], Floats] | None:
    """Return the error bounds of delays between the two sides; None if one clock measured both."""
    hop = next((hop for hop, its_direction in metadata.link_of.items() if its_direction == direction), None)
    if hop is None:
        return None
    ends = [metadata.gateways.get(region, ()) for region in hop]
    if all(metadata.clocks.share_clock(one, other) for one, other in zip(*ends, strict=True)):
        return None
    return partial(metadata.clocks.error_bounds_ns, ends[0], ends[1])


def rows_of(
    direction: LinkDirection,
    metadata: RunMetadata,
    periods: Sequence[Period],
    behaviours: list[Behaviour],
    selected: str | None,
) -> pa.Table:
    """Return `schemas.FIDELITY` for one direction's periods and its behaviour in each."""
    rows = []
    for period, behaviour in zip(periods, behaviours, strict=True):
        judgement = judge(period, behaviour)
        delays, excess = behaviour.delays, behaviour.excess
        low, high = loss_interval(behaviour.lost.chance, behaviour.at_risk, period.loss_chances)
        rows.append(
            {
                "link": direction[0],
                "direction": direction[1],
                "selected": selected,
                "from_s": None if period.start_ns is None else metadata.seconds(period.start_ns),
                "to_s": None if period.end_ns is None else metadata.seconds(period.end_ns),
                "state": period.state,
                "configured_delay_ms": period.delay_us / 1e3,
                "configured_jitter_ms": period.jitter_us / 1e3,
                "delay_min_ms": delays and delays.min_ns / 1e6,
                "delay_p50_ms": delays and delays.p50_ns / 1e6,
                "delay_p99_ms": delays and delays.p99_ns / 1e6,
                "excess_p50_ms": excess and excess.p50_ns / 1e6,
                "excess_p99_ms": excess and excess.p99_ns / 1e6,
                "error_ms": behaviour.error_bound_ns and behaviour.error_bound_ns / 1e6,
                "configured_loss": period.loss,
                "loss_low": low,
                "loss_high": high,
                **dict(_share("duplicate", behaviour.duplicated, period)),
                **dict(_share("corrupt", behaviour.damaged, period)),
                **{f"lost_{cause}": count for cause, count in asdict(behaviour.lost).items()},
                "configured_rate_bits_per_s": period.rate_bits_per_s,
                **{name: getattr(behaviour, name) for name in AS_MEASURED},
                "verdict": judgement.state,
                "valid": judgement.state != VIOLATED,
                "reason": judgement.reason,
                "cause": None,
            }
        )
    return pa.Table.from_pylist(rows, schema=schemas.FIDELITY)


def loss_interval(
    lost: int, packets: int, bursts: tuple[float, float] | None = None
) -> tuple[float | None, float | None]:
    """Return the confidence interval of the loss probability, with error probability `CHANCE`; None without
    packets.

    bursts: the chances that a burst begins, and that it ends. Losses in bursts carry less information than
    independent ones: their number varies as that among fewer packets, by (1 - r) / (1 + r), where r is the
    correlation between one packet's loss and the next one's.
    """
    if not packets:
        return None, None
    correlation = max(0.0, 1 - sum(bursts)) if bursts else 0.0
    worth = (1 - correlation) / (1 + correlation)
    return rate_interval(lost * worth, packets * worth, 1 - CHANCE)


def _share(name: str, share: SegmentShare, period: Period) -> Iterator[tuple[str, float | None]]:
    yield f"configured_{name}", getattr(period, name)
    yield name, share.part
    yield from zip((f"{name}_low", f"{name}_high"), loss_interval(share.count, share.of), strict=True)


def judge(period: Period, did: Behaviour) -> PeriodVerdict:
    """Compare the behaviour of a period's packets with its configuration."""
    if not period.up:
        if did.leaked:
            return PeriodVerdict(VIOLATED, f"{did.leaked} packets crossed while the link was {period.state}")
        return PeriodVerdict(PROVEN) if did.packets else PeriodVerdict(UNPROVEN, "no packet tried to cross")
    loss = _loss_problems(period, did)
    # After a loss the queue is shorter: what surely found room is more often part of a burst.
    is_blurred = period.loss_chances is not None and did.lost.queue > 0
    problems = [
        *([f"{did.leaked} packets larger than the MTU came through"] if did.leaked else []),
        *([] if is_blurred else loss),
        *_share_problems(period, did),
        *_delay_problems(period, did),
        *_rate_problems(period, did),
    ]
    if problems:
        return PeriodVerdict(VIOLATED, "; ".join(problems))
    reason = _too_little(period, did) or _vague_clocks(did) or (BLURRED if loss else None)
    return PeriodVerdict(UNPROVEN, reason) if reason else PeriodVerdict(PROVEN)


def _too_little(period: Period, did: Behaviour) -> str | None:
    """Return why there are too few packets for a verdict, or None."""
    if period.start_ns is not None and period.end_ns is not None:
        lasted_ns = period.end_ns - period.start_ns
        if lasted_ns <= 2 * GUARD_NS + period.delay_us * 1000 and did.matched < ENOUGH:
            return f"it lasted for {lasted_ns / 1e6:.0f} ms only"
    if not did.packets:
        return "no packets"
    if did.matched < ENOUGH and period.loss < 1:
        return f"{did.matched} packets are too few to tell"
    if did.spread is not None and _is_vague(did.spread):
        return f"{did.spread.frames} frames are too few to tell a delay with so much jitter"
    return None


def _is_vague(spread: JitterSpread) -> bool:
    return spread.most_ns - spread.least_ns > 2 * MEDIAN_NS


def _vague_clocks(did: Behaviour) -> str | None:
    """Return a reason if the clocks are known less precisely than the delay must be."""
    if did.error_bound_ns is None or did.error_bound_ns <= MEDIAN_NS:
        return None
    return (
        f"the clock error of {did.error_bound_ns / 1e6:.3f} ms is too large to verify its delay"
        f" to {MEDIAN_NS / 1e6:.1f} ms"
    )


def _delay_problems(period: Period, did: Behaviour) -> list[str]:
    if did.delays is None or did.excess is None or did.matched == 0:
        return []
    excess, beyond = did.sure_excess or did.excess, ""
    if did.error_bound_ns is not None:
        beyond = f", beyond the clock error of {did.error_bound_ns / 1e6:.3f} ms"
    problems = []
    if did.sure_least_ns is not None and did.sure_least_ns < 0:
        problems.append(f"a packet came {-did.delays.min_ns / 1e6:.3f} ms before it left{beyond}")
    elif did.early_ns > EARLY_NS:
        problems.append(f"a packet came {did.early_ns / 1e6:.3f} ms too early{beyond}")
    p50_ns, least_ns, most_ns = excess.p50_ns, 0, 0
    if did.spread is not None and did.error_bound_ns is None:
        p50_ns, least_ns, most_ns = did.spread.median_ns, did.spread.least_ns, did.spread.most_ns
        if _is_vague(did.spread):  # the medians of few draws do not show how far one may be
            least_ns, most_ns = least_ns - (most_ns - least_ns) // 2, most_ns + (most_ns - least_ns) // 2
    if p50_ns > most_ns + MEDIAN_NS:
        problems.append(f"median {p50_ns / 1e6:.2f} ms late")
    elif did.spread is not None and did.error_bound_ns is None and p50_ns < least_ns - MEDIAN_NS:
        problems.append(f"median {-p50_ns / 1e6:.2f} ms early")
    if did.late_p99_ns > max(P99_NS, P99_PART * period.delay_us * 1000):
        problems.append(f"p99 {did.late_p99_ns / 1e6:.2f} ms late")
    return problems + _spread_problems(did)


def _spread_problems(did: Behaviour) -> list[str]:
    if did.spread is None or did.error_bound_ns is not None or did.spread.frames < WIDTH_FRAMES:
        return []
    measured, drawn = did.spread.width_ns, did.spread.drawn_width_ns
    independent = sqrt(log(2 / CHANCE) / (2 * did.spread.frames))
    most = max(DISTANCE_PART * did.spread.drawn_distance, independent) + DISTANCE_MARGIN
    if abs(measured - drawn) <= WIDTH_PART * drawn + 2 * EARLY_NS:
        if did.spread.distance <= most:
            return []
        return [f"the Kolmogorov distance of its delays is {did.spread.distance:.3f}, more than {most:.3f}"]
    return [f"the interquartile range of the jitter is {measured / 1e6:.2f} ms, not {drawn / 1e6:.2f} ms"]


def _rate_problems(period: Period, did: Behaviour) -> list[str]:
    problems = []
    if did.rate_part is not None and abs(did.rate_part - 1) > RATE_PART:
        problems.append(f"rate {did.rate_part - 1:+.1%} off")
    if did.crowded:
        problems.append(f"{did.crowded} packets passed a queue that was longer than its limit")
    return problems


def _loss_problems(period: Period, did: Behaviour) -> list[str]:
    low, high = loss_interval(did.lost.chance, did.at_risk, period.loss_chances)
    most = period.loss + (period.corrupt * UNSEEN_PART if period.corrupts_headers else 0)
    if low is None or high is None or (low <= most and period.loss <= high):
        return []
    if did.lost.chance == did.at_risk:
        return ["no packet came through"]
    part = did.lost.chance / did.at_risk
    return [
        f"{did.lost.chance} of {did.at_risk} packets were lost by chance ({part:.3%}; confidence interval"
        f" {low:.3%} to {high:.3%}), not {period.loss:.3%}"
    ]


def _share_problems(period: Period, did: Behaviour) -> Iterator[str]:
    """Yield the shares of duplicated and of damaged packets whose interval excludes the configured one."""
    seen = 1 - UNSEEN_PART if period.corrupts_headers else 1.0
    for share, least, most, what in (
        (did.duplicated, period.duplicate, period.duplicate, "came twice"),
        (did.damaged, period.corrupt * seen, period.corrupt, "arrived damaged"),
    ):
        low, high = loss_interval(share.count, share.of)
        if low is not None and high is not None and not (low <= most and least <= high):
            interval = f"{share.part:.3%}; confidence interval {low:.3%} to {high:.3%}"
            yield (f"{share.count} of {share.of} packets {what} ({interval}), not {most:.3%}")
