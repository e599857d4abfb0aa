"""The live timelines: bins of throughput per region and of latency per origin, renewed as batches come.

Bins and meanings are those of `analysis.timelines.throughput` and `.latency`. A bin of throughput is told
once all clients were read beyond it, one of latency as soon as any of its events are with every client, and
again when more are. Samples of a bin are kept for SAMPLES_S, afterwards only its percentiles stay, where they
were sent.

Latencies of a stream come as its batches settle, from publication until every client has an event. Sequence
numbers settle in order: those up to the first that some client lacks are taken, cut into pieces as
`analysis.timelines.sequence_intervals` does, and forgotten. What waits is bounded: a stream of which more
than WAITING_MAX batches wait (some client lost one for good) goes on after the oldest of them.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from analysis.live.decoder import Batch
from analysis.timelines.arrays import Ints
from analysis.timelines.percentiles import grouped
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.schemas import BIN_NS
from analysis.timelines.sequence_intervals import NEVER, Batches, cut

WAITING_MAX = 50_000
_Row = tuple[int, int, int]
"""First sequence number, end, time."""


class Latencies:
    """One stream's. `clients` are those that count."""

    def __init__(self, clients: Sequence[str]) -> None:
        self._published: list[_Row] = []
        self._arrived: dict[str, list[_Row]] = {client: [] for client in clients}
        self._settled = 0  # all before this number is done
        self.given_up = 0  # batches that were passed over

    def add(self, batch: Batch) -> None:
        """Take a batch of this stream."""
        rows = self._published if batch.published else self._arrived.get(batch.host)
        end = batch.first_seq + batch.count
        if rows is not None and end > self._settled:
            rows.append((max(batch.first_seq, self._settled), end, batch.t_ns))

    def settle(self) -> tuple[Ints, Ints, Ints]:
        """When events were published, their latencies, and of how many events each tells; each event once."""
        cuts = cut(_batches(self._published), {name: _batches(rows) for name, rows in self._arrived.items()})
        came_ns = cuts.arrived_ns.max(axis=0, initial=-1)
        whole = (cuts.published_ns != NEVER) & (came_ns != NEVER) & (came_ns >= 0)
        done = int(np.argmin(np.append(whole, False)))
        if done:
            self._forget(int(cuts.first_seq[done - 1] + cuts.count[done - 1]))
        elif (
            len(self._published) > WAITING_MAX
            or max(map(len, self._arrived.values()), default=0) > WAITING_MAX
        ):
            self.given_up += 1
            self._forget(int(cuts.first_seq[0] + cuts.count[0]))
        published_ns = cuts.published_ns[:done]
        return published_ns, came_ns[:done] - published_ns, cuts.count[:done]

    def _forget(self, settled: int) -> None:
        self._settled = settled
        self._published = _after(self._published, settled)
        self._arrived = {name: _after(rows, settled) for name, rows in self._arrived.items()}


def _after(rows: list[_Row], settled: int) -> list[_Row]:
    return [(max(first, settled), end, t_ns) for first, end, t_ns in rows if end > settled]


def _batches(rows: list[_Row]) -> Batches:
    first, end, t_ns = np.array(rows, np.int64).reshape(-1, 3).T
    return Batches(first, end - first, t_ns)


class Intervals:
    """Disjoint runs of whole numbers, ascending."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # exclusive

    def add(self, start: int, end: int) -> int:
        """Add [start, end); returns how many of these were not there before."""
        low, high = bisect_left(self._ends, start), bisect_right(self._starts, end)
        there = sum(
            max(0, min(stop, end) - max(begin, start))
            for begin, stop in zip(self._starts[low:high], self._ends[low:high], strict=True)
        )
        begin = min([start, *self._starts[low:high]])
        stop = max([end, *self._ends[low:high]])
        self._starts[low:high], self._ends[low:high] = [begin], [stop]
        return end - start - there


PERCENTS = (50, 95, 99)
SAMPLES_S = 60
RECENT_BINS = 10
"""What "now" means in the terminal's line: the last two seconds that are told."""
BINS_TOLD_MAX = 3_000
"""At once: ten minutes. A clock that was set ahead leaves a gap, not a row for each bin of it."""
IDLE_NS = 5_000_000_000
"""A client from which nothing was read for so long does not hold up the others."""

Series = dict[str, list[list[float]]]
"""By name: rows of a bin's start, seconds since time 0, and its values."""


@dataclass(frozen=True, slots=True)
class TimelineUpdate:
    """What changed: bins of throughput (events/s at one client) and of latency (p50, p95, p99 in ms)."""

    throughput: Series = field(default_factory=dict)
    latency: Series = field(default_factory=dict)
    events_per_s: float | None = None  # lately, at one client, averaged over clients
    p95_ms: float | None = None  # lately
    shown_until_ns: int | None = None


class LiveTimelines:
    """Counts batches into bins."""

    def __init__(self, metadata: RunMetadata, zero_ns: int) -> None:
        self._facts = metadata
        self._zero_ns = zero_ns
        self._regions = {name: metadata.hosts[name].region for name in metadata.clients}
        self._seen: dict[tuple[str, int], Intervals] = defaultdict(Intervals)
        self._arrived: dict[tuple[str, int], int] = defaultdict(int)  # by region and bin
        self._told = 0  # bins of throughput before this are told
        steady = metadata.steady_clients or metadata.clients
        self._latencies = {stream: Latencies(steady) for stream in metadata.owner}
        self._samples: dict[tuple[str, int], list[tuple[Ints, Ints]]] = defaultdict(list)

    def take(self, batches: Iterable[Batch], newest_ns: Mapping[str, int]) -> TimelineUpdate:
        """Count batches. newest_ns: up to when each host was read."""
        for batch in batches:
            if batch.stream in self._latencies:
                self._latencies[batch.stream].add(batch)
            if not batch.published:
                self._count(batch)
        until_ns = self._read_until(newest_ns)
        if until_ns is None:
            return TimelineUpdate()
        latency = self._settle()
        last = max(self._told, (until_ns - self._zero_ns) // BIN_NS)
        throughput = self._tell(last)
        recent = range(max(0, last - RECENT_BINS), last)
        p95_ms = self._recent_p95_ms(recent)
        self._prune(last)
        return TimelineUpdate(throughput, latency, self._recent_rate(recent), p95_ms, until_ns)

    def _count(self, batch: Batch) -> None:
        new = self._seen[batch.host, batch.stream].add(batch.first_seq, batch.first_seq + batch.count)
        number = (batch.t_ns - self._zero_ns) // BIN_NS
        self._arrived[self._regions[batch.host], number] += min(batch.events, new)

    def _read_until(self, newest_ns: Mapping[str, int]) -> int | None:
        """The time before which every client that is not idle was read."""
        read = [newest_ns[name] for name in self._regions if name in newest_ns]
        return min((t_ns for t_ns in read if t_ns > max(read) - IDLE_NS), default=None)

    def _tell(self, last: int) -> Series:
        found: Series = {region: [] for region in dict.fromkeys(self._regions.values())}
        for region, rows in found.items():
            clients = sum(place == region for place in self._regions.values())
            for number in range(max(self._told, last - BINS_TOLD_MAX), last):
                events = self._arrived.get((region, number), 0)
                rows.append([_seconds(number), events / clients / _seconds(1)])
        self._told = last
        return {region: rows for region, rows in found.items() if rows}

    def _settle(self) -> Series:
        touched: set[tuple[str, int]] = set()
        for stream, waiting in self._latencies.items():
            published_ns, latency_ns, count = waiting.settle()
            bins = (published_ns - self._zero_ns) // BIN_NS
            for number in np.unique(bins).tolist():
                mine = bins == number
                key = (self._facts.owner[stream], number)
                self._samples[key].append((latency_ns[mine], count[mine]))
                touched.add(key)
        found: Series = defaultdict(list)
        for origin, number in sorted(touched):
            percentiles = _percentiles(self._samples[origin, number])
            if number >= 0 and percentiles is not None:
                found[origin].append([_seconds(number), *percentiles])
        return dict(found)

    def _recent_rate(self, recent: range) -> float | None:
        if not recent:
            return None
        events = sum(count for (_, number), count in self._arrived.items() if number in recent)
        return events / len(self._regions) / (len(recent) * _seconds(1))

    def _recent_p95_ms(self, recent: range) -> float | None:
        samples = [pair for (_, number), pairs in self._samples.items() if number in recent for pair in pairs]
        percentiles = _percentiles(samples)
        return percentiles[1] if percentiles else None

    def _prune(self, last: int) -> None:
        oldest = last - round(SAMPLES_S / _seconds(1))
        for content in (self._samples, self._arrived):
            for key in [key for key in content if key[1] < oldest]:
                del content[key]


def _seconds(bins: int) -> float:
    return round(bins * BIN_NS / 1e9, 3)


def _percentiles(samples: list[tuple[Ints, Ints]]) -> list[float] | None:
    """p50, p95 and p99 in milliseconds of latencies with their counts; None of nothing."""
    if not samples:
        return None
    latency_ns, count = (np.concatenate(part) for part in zip(*samples, strict=True))
    _, found, totals = grouped(np.zeros(len(count), np.int64), latency_ns, count, PERCENTS)
    return [round(float(row[0]) / 1e6, 3) for row in found] if len(totals) else None
