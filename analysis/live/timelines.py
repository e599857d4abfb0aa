"""The live timelines: bins of throughput per region and of latency per origin, updated as batches arrive.

`analysis.timelines.throughput` and `.latency` compute them, as after the run. A bin of throughput is reported
once all clients were read beyond it. A bin of latency is reported as soon as any of its events has reached
every client that must get it, and again when more have. Samples of a bin are retained for SAMPLES_S;
afterwards only its reported percentiles remain.

Latency is the time from publication until every client that must get an event has it
(`analysis.live.audience`). A stream's sequence numbers settle in order: those before the first one that some
client lacks are taken, cut into pieces by `analysis.timelines.delivery.stream_pieces`, and
discarded. Waiting batches are bounded: if more than WAITING_MAX batches of a stream wait (some client lost
one), the oldest is skipped. If the contract permits loss, a client's missing event is no longer awaited
once a later event of the stream has been there for PASSED_NS.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import NEVER, Ints, ints
from analysis.live.audience import RequiredDeliveries
from analysis.timelines import latency, schemas, throughput
from analysis.timelines.delivery.sequence_intervals import Batches
from analysis.timelines.delivery.stream_pieces import Sets, StreamPieces, cut_stream
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.schemas import BIN_NS

WAITING_MAX = 50_000
RETAINED_NS = 60_000_000_000
"""Older publications are not awaited if events are for some clients only."""
PASSED_NS = 5_000_000_000
_Row = tuple[int, int, int]
"""First sequence number, end, time."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Consecutive sequence numbers of a stream. events: how many are events; the others are collected."""

    published: bool  # False: delivered
    host: str
    stream: int
    first_seq: int
    count: int
    events: int
    t_ns: int


class Latencies:
    """Latencies of one stream as its batches arrive. A client without delivered or due events has no row."""

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self._published: list[_Row] = []
        self._arrived: dict[str, list[_Row]] = {}
        self._settled = 0  # all sequence numbers before are done
        self.given_up = 0  # batches that were skipped

    @property
    def waiting(self) -> bool:
        """Whether any batch is left to settle."""
        return bool(self._published or self._arrived)

    @property
    def oldest_ns(self) -> int:
        """The publication time of the oldest waiting event; NEVER if none waits."""
        return min((t_ns for _, _, t_ns in self._published), default=NEVER)

    def add(self, batch: EventBatch) -> None:
        """Take a published or delivered batch of the stream."""
        rows = self._published if batch.published else self._arrived.setdefault(batch.host, [])
        end = batch.first_seq + batch.count
        if end > self._settled:
            rows.append((max(batch.first_seq, self._settled), end, batch.t_ns))

    def settle(
        self,
        metadata: RunMetadata,
        wanted: Sets | None,
        before_ns: int = NEVER,
        passed_before_ns: int | None = None,
    ) -> pa.Table:
        """Return `schemas.SAMPLES` of events that have reached every client that must get them; each once.

        wanted: the events that each client must get; None: all. before_ns: later publications wait.
        passed_before_ns: events missing before one that arrived earlier than this are lost; None: await them.
        """
        hosts = metadata.clients if wanted is None else dict.fromkeys((*self._arrived, *wanted[0]))
        arrived = [self._arrived.get(host, []) for host in hosts]
        host = np.repeat(np.arange(len(arrived)), [len(rows) for rows in arrived])
        came = _batches(list(chain.from_iterable(arrived)))
        whole = cut_stream(_batches(self._published), came, host, tuple(hosts), wanted)
        awaited = whole if passed_before_ns is None else _without_passed(whole, passed_before_ns)
        complete = latency.completed_ns(awaited, metadata) != NEVER
        done = int(np.argmin(np.append((whole.published_ns < before_ns) & complete, False)))
        if done:
            self._forget(int(whole.first_seq[done - 1] + whole.count[done - 1]))
        elif max(map(len, (self._published, *self._arrived.values()))) > WAITING_MAX:
            self.given_up += 1
            self._forget(int(whole.first_seq[0] + whole.count[0]))
        settled = np.arange(len(whole.count)) < done
        known = replace(whole, published_ns=np.where(settled, whole.published_ns, NEVER))
        return latency.samples(self._stream, known, metadata)

    def _forget(self, settled: int) -> None:
        self._settled = settled
        self._published = _after(self._published, settled)
        self._arrived = {
            name: left for name, rows in self._arrived.items() if (left := _after(rows, settled))
        }


def _without_passed(whole: StreamPieces, before_ns: int) -> StreamPieces:
    """Return the pieces without those that a client need not get: it had a later one before this time."""
    host, piece = whole.split(whole.arrived[whole.arrived_ns < before_ns])
    last = np.full(len(whole.hosts), -1)
    np.maximum.at(last, host, piece)
    wanted = whole.wanted_pairs()
    host, piece = whole.split(wanted)
    return replace(whole, wanted=wanted[piece >= last[host]])


def _after(rows: list[_Row], settled: int) -> list[_Row]:
    return [(max(first, settled), end, t_ns) for first, end, t_ns in rows if end > settled]


def _batches(rows: list[_Row]) -> Batches:
    first, end, t_ns = np.array(rows, np.int64).reshape(-1, 3).T
    return Batches(first, end - first, t_ns)


class Intervals:
    """A set of integers as disjoint ranges in ascending order."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # exclusive

    def add(self, start: int, end: int) -> int:
        """Add [start, end), and return how many of these numbers are new."""
        low, high = bisect_left(self._ends, start), bisect_right(self._starts, end)
        there = sum(
            max(0, min(stop, end) - max(begin, start))
            for begin, stop in zip(self._starts[low:high], self._ends[low:high], strict=True)
        )
        begin = min([start, *self._starts[low:high]])
        stop = max([end, *self._ends[low:high]])
        self._starts[low:high], self._ends[low:high] = [begin], [stop]
        return end - start - there


PERCENTILES = ("p50_ms", "p95_ms", "p99_ms")
SAMPLES_S = 60
MAY_LOSE = ("at-most-once", "best-effort")
"""Values of `Contract.delivery`."""
RECENT_BINS = 10
"""The bins of "now" in the terminal's line: the last two seconds reported."""
BINS_TOLD_MAX = 3_000
"""Bins reported at once: ten minutes. A clock that was set ahead leaves a gap instead of many empty bins."""
IDLE_NS = 5_000_000_000
"""A client without new data for this time does not delay the others."""

Series = dict[str, list[list[float]]]
"""Rows by name: the start of a bin, seconds since time 0, and its values."""


@dataclass(frozen=True, slots=True)
class TimelineUpdate:
    """Changed bins of throughput (events/s at one client) and of latency (p50, p95, p99 in ms)."""

    throughput: Series = field(default_factory=dict)
    latency: Series = field(default_factory=dict)
    events_per_s: float | None = None  # recent, at one client, averaged over clients
    p95_ms: float | None = None  # recent
    shown_until_ns: int | None = None


class LiveTimelines:
    """Turns batches into bins of throughput and latency as they arrive."""

    def __init__(self, metadata: RunMetadata, audience: RequiredDeliveries | None = None) -> None:
        """audience: which client must get which events; None: all clients must get everything."""
        self.metadata = metadata
        """May be replaced later: the times of faults are known once they are applied."""
        self._audience = audience
        self._settle_ns = 0 if audience is None else audience.settle_ns
        self._clients = frozenset(metadata.clients)
        self._may_lose = metadata.declared.contract.delivery in MAY_LOSE
        self._seen: dict[tuple[str, int], Intervals] = defaultdict(Intervals)
        self._arrivals = schemas.ARRIVALS.empty_table()
        self._reported = 0  # bins of throughput before this are reported
        self._latencies = {stream: Latencies(stream) for stream in metadata.owner}
        self._samples = schemas.SAMPLES.empty_table()

    def take(self, batches: Sequence[EventBatch], newest_ns: Mapping[str, int]) -> TimelineUpdate:
        """Count batches, and return the changes. newest_ns: the time up to which each host was read."""
        for batch in batches:
            if batch.stream in self._latencies and (batch.published or batch.host in self._clients):
                self._latencies[batch.stream].add(batch)
        self._count([batch for batch in batches if not batch.published])
        until_ns = self._read_until(newest_ns)
        if until_ns is None:
            return TimelineUpdate()
        latencies = self._settle(until_ns)
        last = max(self._reported, (until_ns - self.metadata.zero_ns) // BIN_NS)
        throughput = self._report_throughput(last)
        recent = range(max(0, last - RECENT_BINS), last)
        settled = range(max(0, recent.start - self._settle_ns // BIN_NS), last)
        p95_ms = latency.headline(self._samples.filter(self._in_bins(settled)))["p95_ms"]
        rate = self._recent_rate(recent)
        self._prune(last)
        return TimelineUpdate(throughput, latencies, rate, p95_ms, until_ns)

    def _count(self, arrived: Sequence[EventBatch]) -> None:
        new = [
            min(
                each.events,
                self._seen[each.host, each.stream].add(each.first_seq, each.first_seq + each.count),
            )
            for each in arrived
        ]
        columns = {name: [getattr(each, name) for each in arrived] for name in ("host", "stream", "t_ns")}
        table = pa.table(columns, schemas.EVENTS.empty_table().select(list(columns)).schema)
        counted = throughput.binned(table, self.metadata, np.array(new, np.int64))
        self._arrivals = pa.concat_tables([self._arrivals, counted])

    def _read_until(self, newest_ns: Mapping[str, int]) -> int | None:
        """Return the time up to which every client that is not idle was read."""
        read = [newest_ns[name] for name in self._clients if name in newest_ns]
        return min((t_ns for t_ns in read if t_ns > max(read) - IDLE_NS), default=None)

    def _report_throughput(self, last: int) -> Series:
        bins = range(max(self._reported, last - BINS_TOLD_MAX), last)
        rates = throughput.region_rates(self._arrivals, self.metadata, bins)
        self._reported = last
        return {
            region: [[_seconds(number), rate] for number, rate in zip(bins, found.tolist(), strict=True)]
            for region, found in rates.items()
            if len(bins)
        }

    def _settle(self, until_ns: int) -> Series:
        waiting = {stream: each for stream, each in self._latencies.items() if each.waiting}
        wanted: Mapping[int, Sets] | None = None
        before_ns = NEVER
        if self._audience is not None:
            before_ns = until_ns - self._settle_ns
            oldest_ns = min((each.oldest_ns for each in waiting.values()), default=NEVER)
            self._audience.read(max(until_ns - RETAINED_NS, min(oldest_ns, before_ns)))
            wanted = self._audience.must_get(list(waiting), self.metadata)
        passed_ns = until_ns - PASSED_NS if self._may_lose else None
        settled = [
            each.settle(self.metadata, None if wanted is None else wanted[stream], before_ns, passed_ns)
            for stream, each in waiting.items()
        ]
        new = pa.concat_tables([schemas.SAMPLES.empty_table(), *settled])
        self._samples = pa.concat_tables([self._samples, new]).combine_chunks()
        touched = self._samples.filter(self._in_bins(np.unique(self._bins(new))))
        found: Series = defaultdict(list)
        for row in (
            latency.table(touched, self.metadata).select(["origin", "start_s", *PERCENTILES]).to_pylist()
        ):
            if row["start_s"] >= 0:
                found[row["origin"]].append(
                    [round(row["start_s"], 3), *(round(row[name], 3) for name in PERCENTILES)]
                )
        return dict(found)

    def _bins(self, samples: pa.Table) -> Ints:
        return (ints(samples, "published_ns") - self.metadata.zero_ns) // BIN_NS

    def _in_bins(self, bins: Ints | range) -> pa.Array:
        return pa.array(np.isin(self._bins(self._samples), bins))

    def _recent_rate(self, recent: range) -> float | None:
        """Return events/s at one client, averaged over the clients of all regions."""
        if not recent:
            return None
        rates = throughput.region_rates(self._arrivals, self.metadata, recent)
        regions = [self.metadata.hosts[name].region for name in self._clients]
        return float(np.mean([rates[region].mean() for region in regions]))

    def _prune(self, last: int) -> None:
        oldest = last - round(SAMPLES_S / _seconds(1))
        self._samples = self._samples.filter(pa.array(self._bins(self._samples) >= oldest))
        self._arrivals = self._arrivals.filter(pc.greater_equal(self._arrivals.column("bin"), oldest))


def _seconds(bins: int) -> float:
    return round(bins * BIN_NS / 1e9, 3)
