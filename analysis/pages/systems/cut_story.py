"""What a system did at a cut, in sentences made of facts: from TCP connections between the parted regions.

Times of the cut count from its beginning, those after the link came back from then. Where nothing was
captured, or the run's packets are gone, there is no story.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.pages.report.formatting import EN_DASH, count_of, seconds
from analysis.pages.systems.sides import Cut, SystemRun, cut_of
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
    """A run's sentences; none where there was no cut, or nothing tells."""
    record, cut = run.record, cut_of(run.record)
    hosts = captured_hosts(record.plan)
    packets = _packets(run, hosts.values())
    if cut is None or packets is None or record.run.times.zero_ns is None:
        return ()
    return sentences(tcp_connections(packets, hosts), hosts.values(), cut, record.run.times.zero_ns)


def sentences(
    found: Sequence[TcpConnection], hosts: Iterable[CapturedHost], cut: Cut, zero_ns: int
) -> tuple[str, ...]:
    """What some connections tell of a cut. zero_ns: time 0 of the run, CLOCK_REALTIME."""
    return tuple(_Story(found, hosts, cut, zero_ns).sentences())


def _packets(run: SystemRun, hosts: Iterable[CapturedHost]) -> pa.Table | None:
    path = run.directory.table("packets")
    if not path.exists():
        return None
    wanted = pc.field("capture").isin([each.capture for each in hosts])
    try:
        return pq.read_table(path, columns=list(PACKET_COLUMNS), filters=wanted)
    except (pa.ArrowInvalid, OSError):
        return None  # torn: the run's own page says so


class _Story:
    def __init__(
        self, found: Sequence[TcpConnection], hosts: Iterable[CapturedHost], cut: Cut, zero_ns: int
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
        """In the order in which things happened."""
        stood = [each for each in self._between if each.stands_at(self._begin_ns)]
        yield self._stood(stood)
        closed = [each for each in stood if self._ended_within(each)]
        if closed:
            yield self._given_up(closed, of=len(stood))
        anew = self._tried_anew()
        if anew:
            yield anew
        elsewhere = self._elsewhere()
        if elsewhere:
            yield elsewhere
        still = [each for each in stood if each not in closed]
        if still:
            yield self._kept(still, of=len(stood))
        reopened = self._reopened()
        if reopened:
            yield reopened

    def _stood(self, stood: Sequence[TcpConnection]) -> str:
        a, b = self._cut.regions
        if not stood:
            return f"No connection stood between {a} and {b} when the link was cut."
        ports = list(dict.fromkeys(each.port for each in stood))
        to = f", to port {_listed(map(str, ports))}" if len(ports) <= PORTS_NAMED else ""
        return f"{count_of(len(stood), 'connection')} stood between {a} and {b} when the link was cut{to}."

    def _ended_within(self, each: TcpConnection) -> bool:
        return each.ending is not None and (self._end_ns is None or each.ending.t_ns < self._end_ns)

    def _given_up(self, closed: Sequence[TcpConnection], of: int) -> str:
        endings = [each.ending for each in closed if each.ending is not None]
        how = " or ".join(sorted({ending.how for ending in endings}))
        at = self._since_cut(ending.t_ns for ending in endings)
        was = "was" if len(closed) == 1 else "were"
        return f"{_whom(len(closed), of)} {was} given up {at} after the cut (by {how})."

    def _tried_anew(self) -> str:
        tries = sorted(
            t_ns
            for each in self._between
            for t_ns in each.tries_ns
            if self._begin_ns <= t_ns and (self._end_ns is None or t_ns < self._end_ns)
        )
        if not tries:
            return "Nobody tried to connect anew over the cut link while it was down." if self._end_ns else ""
        first, last = (self._since_cut([t_ns]) for t_ns in (tries[0], tries[-1]))
        if len(tries) == 1:
            return f"One connection was tried anew while the link was down, {first} after the cut."
        return (
            f"New connections were tried {len(tries)} times while the link was down,"
            f" from {first} to {last} after the cut."
        )

    def _elsewhere(self) -> str:
        """Connections that the parted regions opened to others, which may be a way round."""
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
            f"{count_of(count, 'new connection')} to other regions came while it was down"
            f" ({_listed(named)}), the first {first} after the cut."
        )

    def _kept(self, still: Sequence[TcpConnection], of: int) -> str:
        """Those that nobody gave up while the link was down."""
        who = _whom(len(still), of)
        until_ns = self._end_ns if self._end_ns is not None else 1 << 62
        repeats = [each.repeats_ns(self._begin_ns, until_ns) for each in still]
        most = max(times.size for times in repeats)
        said = [f"{who} stayed open"]
        if most:
            said = [f"{said[0]}: TCP sent again up to {count_of(int(most), 'time')}"]
        last = [int(times[-1]) for times in repeats if times.size]
        if last:
            said.append(f"last {self._since_cut(last)} after the cut")
        if self._end_ns is None:
            return ", ".join(said) + "."
        through = [each.first_arrival_ns(self._end_ns) for each in still]
        came = [t_ns for t_ns in through if t_ns is not None]
        if not came:
            return ", ".join(said) + "; no data came through any more."
        silent = f" ({len(still) - len(came)} never did)" if len(came) < len(still) else ""
        when = f"{self._since_end(came)} after the link was back"
        return f"{', '.join(said)}; data came through {when}{silent}."

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
        return f"{count} between them stood again {self._since_end(answered)} after the link was back."

    def _since_cut(self, times_ns: Iterable[int]) -> str:
        return _span(times_ns, self._begin_ns)

    def _since_end(self, times_ns: Iterable[int]) -> str:
        assert self._end_ns is not None
        return _span(times_ns, self._end_ns)


def _whom(count: int, of: int) -> str:
    """So many of the connections that stood."""
    if count < of:
        return "One of them" if count == 1 else f"{count} of them"
    return {1: "It", 2: "Both"}.get(of, "All")


def _span(times_ns: Iterable[int], from_ns: int) -> str:
    """The least and the most of some times, after one."""
    since = [(t_ns - from_ns) / 1e9 for t_ns in times_ns]
    low, high = seconds(min(since)), seconds(max(since))
    return low if low == high else f"{low}{EN_DASH}{high}"


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
