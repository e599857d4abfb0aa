"""A system's behaviour at a cut as sentences, from TCP connections between the separated regions.

Times during the cut count from its start, later ones from the restoration of the link. Without captures or
packets, there is no text.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.pages.report.formatting import EN_DASH, count_of, seconds
from analysis.pages.systems.sides import RegionCut, SystemRun, cut_of
from analysis.timelines.tcp_connections import (
    PACKET_COLUMNS,
    CapturedHost,
    TcpConnection,
    captured_hosts,
    tcp_connections,
)

PORTS_NAMED = 3
REGIONS_NAMED = 6


def story(run: SystemRun) -> tuple[str, ...]:
    """Return a run's sentences; none if there was no cut, or no data."""
    record, cut = run.record, cut_of(run.record)
    hosts = captured_hosts(record.plan)
    packets = _packets(run, hosts.values())
    if cut is None or packets is None or record.run.times.zero_ns is None:
        return ()
    return sentences(tcp_connections(packets, hosts), hosts.values(), cut, record.run.times.zero_ns)


def sentences(
    found: Sequence[TcpConnection], hosts: Iterable[CapturedHost], cut: RegionCut, zero_ns: int
) -> tuple[str, ...]:
    """Return the sentences on connections at a cut. zero_ns: time 0 of the run, CLOCK_REALTIME."""
    return tuple(_Story(found, hosts, cut, zero_ns).sentences())


def _packets(run: SystemRun, hosts: Iterable[CapturedHost]) -> pa.Table | None:
    path = run.directory.table("packets")
    if not path.exists():
        return None
    wanted = pc.field("capture").isin([each.capture for each in hosts])
    try:
        return pq.read_table(path, columns=list(PACKET_COLUMNS), filters=wanted)
    except (pa.ArrowInvalid, OSError):
        return None  # torn: the run's own page reports that


class _Story:
    def __init__(
        self, found: Sequence[TcpConnection], hosts: Iterable[CapturedHost], cut: RegionCut, zero_ns: int
    ) -> None:
        self._region = {each.name: each.region for each in hosts}
        self._cut = cut
        self._begin_ns = zero_ns + round(cut.start_s * 1e9)
        self._end_ns = None if cut.end_s is None else zero_ns + round(cut.end_s * 1e9)
        self._all = found
        self._between = [each for each in found if self._regions(each) == set(cut.regions)]

    def _regions(self, each: TcpConnection) -> set[str]:
        return {self._region[each.client], self._region[each.server]}

    def sentences(self) -> Iterator[str]:
        """Yield the sentences in order of time."""
        stood = [each for each in self._between if each.stands_at(self._begin_ns)]
        closed = [each for each in stood if self._ended_within(each)]
        still = [each for each in stood if each not in closed]
        yield from filter(None, (
            self._open_at_cut(stood),
            self._closed(closed, of=len(stood)) if closed else "",
            self._retried(),
            self._elsewhere(),
            self._stayed_open(still, of=len(stood)) if still else "",
            self._reopened(),
        ))  # fmt: skip

    def _open_at_cut(self, stood: Sequence[TcpConnection]) -> str:
        a, b = self._cut.regions
        if not stood:
            return f"No connection between {a} and {b} was open when the link was cut."
        ports = list(dict.fromkeys(each.port for each in stood))
        to = f", to port {_listed(map(str, ports))}" if len(ports) <= PORTS_NAMED else ""
        opened = "was" if len(stood) == 1 else "were"
        count = count_of(len(stood), "connection")
        return f"{count} between {a} and {b} {opened} open when the link was cut{to}."

    def _ended_within(self, each: TcpConnection) -> bool:
        return each.ending is not None and (self._end_ns is None or each.ending.t_ns < self._end_ns)

    def _closed(self, closed: Sequence[TcpConnection], of: int) -> str:
        endings = [each.ending for each in closed if each.ending is not None]
        how = " or ".join(sorted({ending.how for ending in endings}))
        at = self._since_cut(ending.t_ns for ending in endings)
        was = "was" if len(closed) == 1 else "were"
        return f"{_whom(len(closed), of)} {was} closed {at} after the cut (by {how})."

    def _retried(self) -> str:
        tries = sorted(
            t_ns
            for each in self._between
            for t_ns in each.tries_ns
            if self._begin_ns <= t_ns and (self._end_ns is None or t_ns < self._end_ns)
        )
        if not tries:
            return "No new connection was tried over the cut link while it was down." if self._end_ns else ""
        first, last = (self._since_cut([t_ns]) for t_ns in (tries[0], tries[-1]))
        if len(tries) == 1:
            return f"One new connection was tried while the link was down, {first} after the cut."
        return (
            f"New connections were tried {len(tries)} times while the link was down,"
            f" from {first} to {last} after the cut."
        )

    def _elsewhere(self) -> str:
        """Return new connections of the separated regions to others, which may be a detour."""
        opened: dict[tuple[str, str], list[int]] = {}
        for each in self._all:
            began = each.answered_ns
            if began is None or began < self._begin_ns or self._regions(each) == set(self._cut.regions):
                continue
            if self._end_ns is not None and began >= self._end_ns:
                continue
            pair = self._region[each.client], self._region[each.server]
            if set(pair) & set(self._cut.regions):
                opened.setdefault(pair, []).append(began)
        if not opened:
            return ""
        named = [f"{a} to {b}" for a, b in opened][:REGIONS_NAMED]
        count = sum(map(len, opened.values()))
        first = self._since_cut([min(min(times) for times in opened.values())])
        return (
            f"{count_of(count, 'new connection')} to other regions opened while it was down"
            f" ({_listed(named)}), the first {first} after the cut."
        )

    def _stayed_open(self, still: Sequence[TcpConnection], of: int) -> str:
        """Return connections that stayed open while the link was down."""
        who = _whom(len(still), of)
        until_ns = self._end_ns if self._end_ns is not None else 1 << 62
        repeats = [each.repeats_ns(self._begin_ns, until_ns) for each in still]
        most = max(times.size for times in repeats)
        parts = [f"{who} stayed open"]
        if most:
            parts = [f"{parts[0]}: TCP retransmitted up to {count_of(int(most), 'time')}"]
        last = [int(times[-1]) for times in repeats if times.size]
        if last:
            parts.append(f"last {self._since_cut(last)} after the cut")
        if self._end_ns is None:
            return ", ".join(parts) + "."
        through = [each.first_arrival_ns(self._end_ns) for each in still]
        arrived = [t_ns for t_ns in through if t_ns is not None]
        if not arrived:
            return ", ".join(parts) + "; no data arrived afterwards."
        silent = f" ({len(still) - len(arrived)} never)" if len(arrived) < len(still) else ""
        when = f"{self._since_end(arrived)} after the link was restored"
        return f"{', '.join(parts)}; data arrived {when}{silent}."

    def _reopened(self) -> str:
        if self._end_ns is None:
            return ""
        answered = [
            each.answered_ns
            for each in self._between
            if each.answered_ns is not None and each.answered_ns >= self._end_ns
        ]
        if not answered:
            return ""
        count = count_of(len(answered), "new connection")
        return f"{count} between them opened {self._since_end(answered)} after the link was restored."

    def _since_cut(self, times_ns: Iterable[int]) -> str:
        return _span(times_ns, self._begin_ns)

    def _since_end(self, times_ns: Iterable[int]) -> str:
        assert self._end_ns is not None
        return _span(times_ns, self._end_ns)


def _whom(count: int, of: int) -> str:
    """Return the subject of a sentence about this number of connections."""
    if count < of:
        return "One of them" if count == 1 else f"{count} of them"
    return {1: "It", 2: "Both"}.get(of, "All")


def _span(times_ns: Iterable[int], from_ns: int) -> str:
    """Return the minimum and maximum of some times, after another."""
    since = [(t_ns - from_ns) / 1e9 for t_ns in times_ns]
    low, high = seconds(min(since)), seconds(max(since))
    return low if low == high else f"{low}{EN_DASH}{high}"


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
