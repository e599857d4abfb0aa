"""SQL functions in addition to DuckDB's own, over Arrow arrays.

`ip(hi, lo)`: an address of `packets` as text (RFC 5952). `since_start(t_ns)`: seconds since time 0 of the run
at that time. `during(fault, t_ns)`: whether the effect of the named fault lasted at that time.

A time belongs to the run during which it was. If runs overlap, as on several machines, a time is ambiguous,
and `since_start` and `during` raise an error.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.capture.pcap.streams import format_address
from analysis.errors import AnalysisError
from experiments.records.run_record import RunRecord

Array: TypeAlias = "pa.Array | pa.ChunkedArray"


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """An SQL function: parameters by name with their SQL types, the result's type, and the implementation."""

    parameters: Mapping[str, str]
    gives: str
    call: Callable[..., pa.Array]


@dataclass(frozen=True, slots=True)
class RunSpan:
    """The time span of a run, its time 0, and the effects of its faults: name, from, to."""

    run: str
    begin_ns: int
    end_ns: int
    zero_ns: int
    faults: tuple[tuple[str, int, int], ...]


def span(run: str, record: RunRecord, faults: Sequence[Mapping[str, Any]]) -> RunSpan | None:
    """Return the span of a run, from its record and its rows of `faults`; None if it never began."""
    times = record.times
    if times.started_ns is None or times.zero_ns is None:
        return None
    end_ns = times.ended_ns or (1 << 62)
    effects = tuple(
        (row["fault"], row["from_ns"], row["to_ns"] or end_ns) for row in faults if row["from_ns"] is not None
    )
    return RunSpan(run, times.started_ns, end_ns, times.zero_ns, effects)


def functions(spans: Sequence[RunSpan]) -> dict[str, SqlFunction]:
    """Return all functions, for queries about these runs."""
    times = _RunTimes(tuple(sorted(spans, key=lambda each: each.begin_ns)))
    return {
        "ip": SqlFunction({"hi": "BIGINT", "lo": "BIGINT"}, "VARCHAR", ip),
        "since_start": SqlFunction({"t_ns": "BIGINT"}, "DOUBLE", times.since_start),
        "during": SqlFunction({"fault": "VARCHAR", "t_ns": "BIGINT"}, "BOOLEAN", times.during),
    }


def ip(hi: Array, lo: Array) -> pa.Array:
    """Format addresses as text."""
    highs, high_places = np.unique(_integers(hi), return_inverse=True)
    lows, low_places = np.unique(_integers(lo), return_inverse=True)
    pairs, places = np.unique(high_places * len(lows) + low_places, return_inverse=True)
    halves = [(int(highs[pair // len(lows)]), int(lows[pair % len(lows)])) for pair in pairs]
    names = pa.array([format_address(high, low) for high, low in halves], pa.string())
    return names.take(pa.array(places, mask=~(_known(hi) & _known(lo))))


@dataclass(frozen=True, slots=True)
class _RunTimes:
    """Runs in order of their start."""

    spans: tuple[RunSpan, ...]

    def since_start(self, t_ns: Array) -> pa.Array:
        """Return seconds since time 0; null for times outside all runs."""
        times, place = self._placed(t_ns)
        zeros = np.array([each.zero_ns for each in self.spans] or [0])
        return pa.array((times - zeros[place]) / 1e9, mask=place < 0)

    def during(self, fault: Array, t_ns: Array) -> pa.Array:
        """Return whether the fault's effect lasted at each time; null for times outside all runs."""
        times, place = self._placed(t_ns)
        found = np.zeros(len(times), dtype=bool)
        for number, each in enumerate(self.spans):
            for name, from_ns, to_ns in each.faults:
                asked = np.asarray(pc.equal(fault, name).fill_null(False))
                found |= (place == number) & asked & (from_ns <= times) & (times < to_ns)
        return pa.array(found, mask=place < 0)

    def _placed(self, t_ns: Array) -> tuple[Any, Any]:
        """Return the times, and the index of each one's run; -1 for none."""
        for one, other in zip(self.spans, self.spans[1:], strict=False):
            if other.begin_ns < one.end_ns:
                problem = "overlap in time, so a time does not identify a run"
                raise AnalysisError(f"{one.run} and {other.run} {problem}: query one, or use runs.zero_ns")
        times, known = _integers(t_ns), _known(t_ns)
        begins = np.array([each.begin_ns for each in self.spans], dtype=np.int64)
        place = np.searchsorted(begins, times, "right") - 1
        ends = np.array([each.end_ns for each in self.spans] or [0], dtype=np.int64)
        return times, np.where(known & (times <= ends[place]), place, -1)


def _integers(array: Array) -> Any:
    return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)


def _known(array: Array) -> Any:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
