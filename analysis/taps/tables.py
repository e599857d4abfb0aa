"""The tables of captures without a run, as streams: rows are computed when a question reads them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from analysis.capture.clocks.run_clocks import as_entry, clocks_table
from analysis.capture.time_range import EVER, TimeRange
from analysis.errors import AnalysisError
from analysis.jobs.extraction import captures_table
from analysis.schemas import CAPTURES, MESSAGES, PACKETS, TRANSFERS
from analysis.sql.functions import ip
from analysis.sql.streams import TableStream
from analysis.taps import connections
from analysis.taps.connections import ConnectionTracker
from analysis.taps.crossing import ComparedTaps
from analysis.taps.decoding import MessageDecoding
from analysis.taps.opening import Tap, Taps
from analysis.taps.run_captures import captures_of
from analysis.taps.transfers import transfers
from analysis.timelines.links.link_segments import hashes
from analysis.timelines.progress import ends_in_order
from analysis.timelines.schemas import CLOCKS, CONNECTIONS, SILENCES, THROUGHPUT
from experiments.records.rundir import RunDirectory

BINS_MAX: Final = 3_000
_WIDTHS_MS: Final = (200, *(seconds * 1_000 for seconds in (1, 2, 5, 10, 30, 60, 300, 900, 3_600, 86_400)))
"""Widths of bins; the first that gives at most BINS_MAX is used."""
OF_RUNS: Final = ("connections", "silences")
"""Tables that runs have too, from their captures."""
PAIRS_MAX: Final = 10_000
"""Pairs of addresses with a throughput of their own, for each capture; the rest is one pair, OTHERS."""
OTHERS: Final = "others"
_ADDRESSES = ("src_hi", "src_lo", "dst_hi", "dst_lo")

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class TapTables:
    """The tables of some captures within a time range. silence_s: the least silence that is a row."""

    compared: ComparedTaps
    times: TimeRange = EVER
    silence_s: float = connections.SILENCE_S
    decoding: MessageDecoding | None = None

    def stream(self, table: str) -> TableStream | None:
        """Return a table; None if captures have no such table."""
        if table == "messages" and self.decoding is None:
            return None
        schema, compute = STREAMS.get(table, (None, None))
        return None if schema is None or compute is None else TableStream(schema, partial(compute, self))

    def packets(self) -> Batches:
        """Yield PACKETS."""
        for tap in self.compared.taps.taps:
            yield from tap.batches(PACKETS, self.times)

    def captures(self) -> Batches:
        """Yield CAPTURES."""
        taps = self.compared.taps
        yield from captures_table({tap.name: tap.index for tap in taps.taps}, taps.unusable).to_batches()

    def connections(self) -> Batches:
        """Yield CONNECTIONS."""
        for tap in self.compared.taps.taps:
            for rows, _ in self._tracker(tap).run():
                yield from rows.to_batches()

    def silences(self) -> Batches:
        """Yield SILENCES."""
        for tap in self.compared.taps.taps:
            for _, rows in self._tracker(tap).run():
                yield from rows.to_batches()

    def _tracker(self, tap: Tap) -> ConnectionTracker:
        return ConnectionTracker(tap, self.times, self.silence_s)

    def transfers(self) -> Batches:
        """Yield TRANSFERS."""
        for crossing in self.compared.crossings:
            for rows in transfers(crossing, self.times):
                yield from rows.to_batches()

    def messages(self) -> Batches:
        """Yield MESSAGES."""
        assert self.decoding is not None, "without a system there is no such table"
        for tap in self.compared.taps.taps:
            yield from self.decoding.messages(tap, self.times)

    def clocks(self) -> Batches:
        """Yield CLOCKS."""
        machines = [as_entry(each) for each in self.compared.estimates.values()]
        yield from clocks_table(machines).to_batches()

    def throughput(self) -> Batches:
        """Yield THROUGHPUT: of each capture, and of each pair of addresses in it."""
        taps = self.compared.taps
        for tap in taps.taps:
            yield from _throughput(
                tap, self.times, taps.zero_ns, bin_ms(taps.end_ns - taps.zero_ns)
            ).to_batches()


STREAMS: Final[Mapping[str, tuple[pa.Schema, Callable[[TapTables], Batches]]]] = {
    "captures": (CAPTURES, TapTables.captures),
    "packets": (PACKETS, TapTables.packets),
    "connections": (CONNECTIONS, TapTables.connections),
    "silences": (SILENCES, TapTables.silences),
    "transfers": (TRANSFERS, TapTables.transfers),
    "clocks": (CLOCKS, TapTables.clocks),
    "messages": (MESSAGES, TapTables.messages),
    "throughput": (THROUGHPUT, TapTables.throughput),
}
"""The tables of captures."""


def stream_of_run(run: RunDirectory, table: str) -> TableStream:
    """Return one of OF_RUNS from a run's captures."""
    return TableStream(STREAMS[table][0], partial(_of_run, run, table))


def _of_run(run: RunDirectory, table: str) -> Batches:
    captures = tuple(captures_of(run))
    if not captures and run.read_run().listed_captures:
        raise AnalysisError(f"{run.path}: the table {table} is made from captures, and none can be read")
    return STREAMS[table][1](TapTables(ComparedTaps(Taps((str(run.path),), captures))))


def bin_ms(duration_ns: int) -> int:
    """Return the width of bins for captures of this length."""
    fitting = (width for width in _WIDTHS_MS if duration_ns <= BINS_MAX * width * 1_000_000)
    return next(fitting, _WIDTHS_MS[-1])


def _throughput(tap: Tap, times: TimeRange, zero_ns: int, width_ms: int) -> pa.Table:
    """Return the THROUGHPUT of a capture. Pairs: `forward` is from the lower address."""
    pairs: dict[int, int] = {}
    addresses: list[tuple[int, ...]] = []
    wire: dict[tuple[int, int, int], int] = {}  # pair (-1: all, PAIRS_MAX: others), direction, bin
    for columns in tap.packets(times, ("t_ns", "wire_length", "sport", "dport", *_ADDRESSES)):
        bins = (columns["t_ns"] - zero_ns) // (width_ms * 1_000_000)
        zero = np.zeros(bins.size, np.int64)
        halves = [columns[name].astype(np.int64) for name in _ADDRESSES]
        ends, is_forward = ends_in_order([*halves[:2], zero, *halves[2:], zero])
        ends = [ends[place] for place in (0, 1, 3, 4)]
        keys, first, which = np.unique(hashes(np.stack(ends, axis=1)), return_index=True, return_inverse=True)
        for key, row in zip(keys.tolist(), first.tolist(), strict=True):
            if key not in pairs and len(addresses) < PAIRS_MAX:
                pairs[key] = len(addresses)
                addresses.append(tuple(int(end[row]) for end in ends))
        pair = np.array([pairs.get(key, PAIRS_MAX) for key in keys.tolist()], np.int64)[which]
        for number, way in ((zero - 1, zero), (pair, (~is_forward).astype(np.int64))):
            code = ((number + 1) * 2 + way) << 40 | bins
            codes, place = np.unique(code, return_inverse=True)
            sums = np.bincount(place, columns["wire_length"]).astype(np.int64)
            for one, amount in zip(codes.tolist(), sums.tolist(), strict=True):
                key = (one >> 41) - 1, one >> 40 & 1, one & (1 << 40) - 1
                wire[key] = wire.get(key, 0) + amount
    names = {-1: tap.name, PAIRS_MAX: OTHERS}
    rows = [
        {
            "scope": "capture" if pair < 0 else "pair",
            "name": tap.name
            if pair < 0
            else f"{tap.name}: {names.get(pair) or ' '.join(_texts(addresses[pair]))}",
            "direction": None if pair in names else ("forward", "backward")[way],
            "start_s": number * width_ms / 1000,
            "bin_s": width_ms / 1000,
            "bytes_per_s": amount / (width_ms / 1000),
        }
        for (pair, way, number), amount in sorted(wire.items())
    ]
    return pa.Table.from_pylist(rows, THROUGHPUT)


def _texts(halves: tuple[int, ...]) -> list[str]:
    texts: list[str] = ip(pa.array(halves[::2]), pa.array(halves[1::2])).to_pylist()
    return texts
