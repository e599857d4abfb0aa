"""How long one client was without one stream after a fault: the figures of a single pair.

All figures come from three arrays per pair: for each piece of the stream its number of events, when it was
published (arrived at its local proxy) and when the client received it. Times count in seconds from the
fault's applied time T.

- switch: until the first event published after T arrived. The *gap* lasts from T until then.
- catch-up: until all events have arrived that were published by the end of the gap and had not arrived by T;
  this includes events in flight at T that the fault dropped.
- settled: the start of the first 200 ms bin (by time of publication) from which on the p95 latency stays
  within 20 % of what the path allows for 2 s, but not before the switch. "Stays" means: the p95 of the bin is
  within, and so is that of all events of those 2 s. The path allows the p95 of the 5 s before T, plus the
  configured length of the path by which each event arrived, minus that of the path before T.
- backlog: the largest number of events published but not arrived, between T and the end of the catch-up.

A figure that cannot be measured is None, with its reason.

The RFCs on convergence benchmarks use other measures. RFC 6412 and 6413 define a *route*, here a stream on
its path to a client, and *packets*, here its events. A packet that takes longer than the *forwarding delay
threshold* counts as lost. Events that arrive late because they were stored for the client are *impaired* (RFC
6414), even if none is missing in the end. The threshold is that of `settled`: 20 % above what the path
allows.

Two methods give the time from the convergence event instant, when the fault was applied:

- rate-derived: until the first sampling interval (200 ms) from which on the route carries at least 95 % of
  its offered load, for the sustained convergence validation time of 2 s;
- loss-derived: the time in which the offered load equals the number of impaired events.

They agree if a route is lost once and completely. They differ if it carries a part of its load, is lost
again, or its load is not steady. The *loss of connectivity period* is the longest time after the event
without any arrival. See docs/recovery.md.
"""

from dataclasses import asdict, dataclass, field, replace

import numpy as np
import numpy.typing as npt

from analysis.arrays import NEVER, Bools, Ints
from analysis.timelines.percentiles import weighted
from analysis.timelines.schemas import BIN_NS

BASELINE_NS = 5_000_000_000
SETTLED_NS = 2_000_000_000
SETTLED_PERCENT = 120
P95 = 95
VALIDATION_NS = 2_000_000_000
LOAD_PART = 0.95


@dataclass(frozen=True, slots=True)
class PairTimes:
    """The figures of one pair; `reasons` explains each that is None."""

    switch_ns: int | None = None
    catch_up_ns: int | None = None
    settled_ns: int | None = None
    backlog_events: int | None = None
    reasons: dict[str, str] = field(default_factory=dict)

    def later(self, by_ns: int) -> "PairTimes":
        """Return the same figures, counted from a time `by_ns` earlier."""
        known = {
            name: t_ns for name, t_ns in asdict(self).items() if name.endswith("_ns") and t_ns is not None
        }
        return replace(self, **{name: t_ns + by_ns for name, t_ns in known.items()})


@dataclass(frozen=True, slots=True)
class PairPieces:
    """A (stream, client) pair's pieces as parallel arrays (NEVER: did not happen), with their paths' lengths.

    path_ns: configured length of the path by which each piece arrived, minus that of the path just before the
    fault.
    """

    count: Ints
    published_ns: Ints
    came_ns: Ints
    path_ns: Ints


def measure(pair: PairPieces, fault_ns: int, *, until_ns: int) -> PairTimes:
    """Return the figures of one pair for the fault applied at `fault_ns`; publishing stopped at
    `until_ns`.
    """
    published = pair.published_ns != NEVER
    after = published & (pair.published_ns >= fault_ns)
    if not after.any():
        return _nothing("no event was published after the fault")
    first_ns = int(pair.came_ns[after].min())
    if first_ns == NEVER:
        return _nothing("no event published after the fault ever arrived")
    reasons: dict[str, str] = {}
    gap = published & (pair.published_ns <= first_ns) & (pair.came_ns >= fault_ns)
    if first_ns < fault_ns or not gap.any():
        return _nothing("events arrived before they were published: the machines' clock errors are unknown")
    end_ns = int(pair.came_ns[gap].max())
    if end_ns == NEVER:
        missing = int(pair.count[gap & (pair.came_ns == NEVER)].sum())
        reasons["catch_up_s"] = f"{missing} events of the gap never came"
    settled_ns, reason = _settled(pair, published, fault_ns, until_ns)
    if reason:
        reasons["settled_s"] = reason
    return PairTimes(
        switch_ns=first_ns - fault_ns,
        catch_up_ns=None if end_ns == NEVER else end_ns - fault_ns,
        settled_ns=None if settled_ns is None else max(settled_ns, first_ns - fault_ns),
        backlog_events=_backlog(pair, published, fault_ns, min(end_ns, until_ns)),
        reasons=reasons,
    )


def _nothing(reason: str) -> PairTimes:
    return PairTimes(reasons=dict.fromkeys(("switch_s", "catch_up_s", "settled_s", "backlog_events"), reason))


def _backlog(pair: PairPieces, published: npt.NDArray[np.bool_], start_ns: int, end_ns: int) -> int:
    """Return the largest number of events that were published and had not arrived, in [start, end].

    The maximum is at a time of publication, so only those are evaluated.
    """
    count, published_ns, came_ns = (
        pair.count[published],
        pair.published_ns[published],
        pair.came_ns[published],
    )
    in_order, by_coming = np.argsort(published_ns, kind="stable"), np.argsort(came_ns, kind="stable")
    times = np.unique(published_ns[(published_ns >= start_ns) & (published_ns <= end_ns)])
    if not len(times):
        return 0
    out = _running(count[in_order], published_ns[in_order], times)
    back = _running(count[by_coming], came_ns[by_coming], times)
    return int((out - back).max())


def _running(count: Ints, at_ns: Ints, times: Ints) -> Ints:
    """Return how many events there were at each of `times`."""
    total = np.concatenate(([0], np.cumsum(count)))
    return total[np.searchsorted(at_ns, times, side="right")]


def _settled(
    pair: PairPieces, published: npt.NDArray[np.bool_], fault_ns: int, until_ns: int
) -> tuple[int | None, str | None]:
    """Return the begin of the first bin from which on latency is as the path allows, from the fault on.

    Otherwise return the reason why it never is.
    """
    if baseline_of(pair, published, fault_ns) is None:
        return None, "nothing arrived in the 5 s before the fault: no baseline"
    within = timely(pair, published, fault_ns)
    after = published & (pair.published_ns >= fault_ns)
    bins = (pair.published_ns[after] - fault_ns) // BIN_NS
    return _first_settled(bins, ~within[after], pair.count[after], int(until_ns - fault_ns) // BIN_NS)


def baseline_of(
    pair: PairPieces, published: npt.NDArray[np.bool_], fault_ns: int, percent: int = P95
) -> int | None:
    """Return the latency of arrivals in the 5 s before the fault, p95 by default; None without arrivals."""
    came = published & (pair.came_ns != NEVER)
    before = came & (pair.published_ns >= fault_ns - BASELINE_NS) & (pair.came_ns <= fault_ns)
    latency_ns = pair.came_ns[before] - pair.published_ns[before]
    return weighted(latency_ns, pair.count[before], percent)


def timely(pair: PairPieces, published: npt.NDArray[np.bool_], fault_ns: int) -> npt.NDArray[np.bool_]:
    """Return which pieces arrived within 20 % of what their path allows, given the latency before the
    fault.
    """
    came = published & (pair.came_ns != NEVER)
    latency_ns = np.where(came, pair.came_ns - pair.published_ns, 0)
    allowed_ns = (baseline_of(pair, published, fault_ns) or 0) + pair.path_ns
    found: npt.NDArray[np.bool_] = came & (100 * latency_ns <= SETTLED_PERCENT * allowed_ns)
    return found


def _first_settled(
    bins: Ints, over: npt.NDArray[np.bool_], count: Ints, end_bin: int
) -> tuple[int | None, str | None]:
    """Return the start of the first bin from which on at most 5 % of the events are late, in it and
    over 2 s.
    """
    span = SETTLED_NS // BIN_NS
    if end_bin < span:
        return None, "the run ended within 2 s of the fault"
    known = bins <= end_bin  # later publications come from a wrong clock
    bins, over, count = bins[known], over[known], count[known]
    events, bad = (np.bincount(bins, row, minlength=end_bin + 1) for row in (count, count * over))
    events_2s, bad_2s = (np.convolve(row, np.ones(span))[span - 1 :] for row in (events, bad))
    allowed = 1 - P95 / 100
    good = (events > 0) & (bad <= allowed * events) & (bad_2s <= allowed * events_2s)
    settled = np.flatnonzero(good[: end_bin - span + 1])
    if not len(settled):
        return None, "latency did not stay within 20 % of what the path allows for 2 s before the run ended"
    return int(settled[0]) * BIN_NS, None


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """Benchmarks of one route; None if unknown. Times in nanoseconds from the convergence event instant."""

    rate_derived_ns: int | None = None
    loss_derived_ns: int | None = None
    connectivity_lost_ns: int | None = None
    impaired: int | None = None


def benchmark(pair: PairPieces, fault_ns: int, *, until_ns: int) -> Benchmarks:
    """Return the benchmarks of one route for the event at `fault_ns`.

    Events published from `until_ns` on, when the next fault happens or publishing stops, do not count.
    """
    published = pair.published_ns != NEVER
    baseline_ns = baseline_of(pair, published, fault_ns, percent=50)
    if baseline_ns is None:
        return Benchmarks()
    good = timely(pair, published, fault_ns)
    due_ns = np.where(published, pair.published_ns + baseline_ns + np.maximum(pair.path_ns, 0), 0)
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
    pair: PairPieces, offered: Bools, good: Bools, due_ns: "np.typing.NDArray[np.int64]", end_ns: int
) -> int | None:
    """Return the start of the first sampling interval from which on the full load arrived, for long enough.

    An event counts in the interval in which it was due, so that batches make no difference.
    """
    end_bin, span = end_ns // BIN_NS, VALIDATION_NS // BIN_NS
    if end_bin < span:
        return None
    bins = np.minimum(due_ns[offered] // BIN_NS, end_bin)
    load = np.bincount(bins, pair.count[offered], minlength=end_bin + 1)[:end_bin]
    came = np.bincount(bins, (pair.count * good)[offered], minlength=end_bin + 1)[:end_bin]
    full = came >= LOAD_PART * load
    sustained = np.convolve(full, np.ones(span), "valid") == span
    found = np.flatnonzero(sustained)
    return int(found[0]) * BIN_NS if len(found) else None


def _silence(pair: PairPieces, fault_ns: int, until_ns: int) -> int | None:
    """Return the longest time around and after the event without any arrival."""
    came_ns = np.sort(pair.came_ns[pair.came_ns != NEVER])
    before = came_ns[came_ns < fault_ns][-1:]
    after = came_ns[(came_ns >= fault_ns) & (came_ns < until_ns)]
    if not len(after):
        return None
    return int(np.diff(np.concatenate((before, after))).max(initial=0))
