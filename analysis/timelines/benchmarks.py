"""Recovery as the RFCs on convergence benchmarks measure it, for a single (stream, client) pair.

RFC 6412 and 6413 know a *route*, here a stream on its way to a client, and *packets*, here its events. A
packet that takes longer than the *forwarding delay threshold* counts as lost. Events that come late because
they were kept for the client are such: *impaired* (RFC 6414), though nothing is missing in the end. The
threshold is that of `recovery_times.settled`: 20 % above what the way allows.

Two methods give the time from the convergence event instant, when the fault took hold, on:

- rate-derived: until the first sampling interval (200 ms) from which on the route carries its whole offered
  load, but for 5 %, for the sustained convergence validation time of 2 s;
- loss-derived: as long as the offered load needs for as many events as were impaired.

They agree where a route is lost once and whole. They differ where it carries a part of its load, is lost
again, or its load is not steady. The *loss of connectivity period* is the longest time after the event in
which nothing came at all. See docs/recovery.md.
"""

from dataclasses import dataclass

import numpy as np

from analysis.timelines.arrays import Bools
from analysis.timelines.pieces import NEVER
from analysis.timelines.recovery_times import Pair, baseline_of, timely
from analysis.timelines.schemas import BIN_NS

VALIDATION_NS = 2_000_000_000
LOAD_PART = 0.95


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """Of one route; None where it cannot be told. Times in nanoseconds from the convergence event instant."""

    rate_derived_ns: int | None = None
    loss_derived_ns: int | None = None
    connectivity_lost_ns: int | None = None
    impaired: int | None = None


def benchmark(pair: Pair, fault_ns: int, *, until_ns: int) -> Benchmarks:
    """The benchmarks of one route for the event at `fault_ns`; what is published from `until_ns` on, when
    the next one happens or publishing stops, does not count.
    """
    published = pair.published_ns != NEVER
    baseline_ns = baseline_of(pair, published, fault_ns, percent=50)
    if baseline_ns is None:
        return Benchmarks()
    good = timely(pair, published, fault_ns)
    due_ns = np.where(published, pair.published_ns + baseline_ns + np.maximum(pair.way_ns, 0), 0)
    offered = published & (due_ns >= fault_ns) & (pair.published_ns < until_ns)
    if not offered.any() or until_ns <= fault_ns:
        return Benchmarks()
    impaired = int(pair.count[offered & ~good].sum())
    first_ns = int(pair.published_ns[offered].min())
    rate_per_ns = pair.count[offered].sum() / max(until_ns - first_ns, BIN_NS)
    return Benchmarks(
        rate_derived_ns=_rate_derived(pair, offered, good, due_ns - fault_ns, until_ns - fault_ns),
        loss_derived_ns=round(impaired / rate_per_ns),
        connectivity_lost_ns=_silence(pair, fault_ns, until_ns),
        impaired=impaired,
    )


def _rate_derived(
    pair: Pair, offered: Bools, good: Bools, due_ns: "np.typing.NDArray[np.int64]", end_ns: int
) -> int | None:
    """The start of the first sampling interval from which on the whole load came, for long enough.

    An event is counted in the interval in which it was due, so that batches make no difference.
    """
    end_bin, span = end_ns // BIN_NS, VALIDATION_NS // BIN_NS
    if end_bin < span:
        return None
    bins = np.minimum(due_ns[offered] // BIN_NS, end_bin)
    load = np.bincount(bins, pair.count[offered], minlength=end_bin + 1)[:end_bin]
    came = np.bincount(bins, (pair.count * good)[offered], minlength=end_bin + 1)[:end_bin]
    whole = came >= LOAD_PART * load
    sustained = np.convolve(whole, np.ones(span), "valid") == span
    found = np.flatnonzero(sustained)
    return int(found[0]) * BIN_NS if len(found) else None


def _silence(pair: Pair, fault_ns: int, until_ns: int) -> int | None:
    """The longest time around and after the event in which nothing came."""
    came_ns = np.sort(pair.came_ns[pair.came_ns != NEVER])
    before = came_ns[came_ns < fault_ns][-1:]
    after = came_ns[(came_ns >= fault_ns) & (came_ns < until_ns)]
    if not len(after):
        return None
    return int(np.diff(np.concatenate((before, after))).max(initial=0))
