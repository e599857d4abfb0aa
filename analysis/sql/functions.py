"""The functions that questions have beside SQL's own: one definition for every engine, over Arrow arrays.

`ip(hi, lo)`: an address of `packets` as text (RFC 5952). `since_start(t_ns)`: seconds since time 0 of the run
that went on at that time. `during(fault, t_ns)`: whether the effect of the fault of that name lasted then.

A time belongs to the run during which it was. Where runs went on at once, as on several machines, it is no
run's alone, and the two that need to know say so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.errors import AnalysisError
from experiments.records.run_record import RunRecord

Array: TypeAlias = "pa.Array | pa.ChunkedArray"

_64_BITS: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Function:
    """A function of SQL: its parameters by name with their types in SQL, its result's type, and itself."""

    parameters: Mapping[str, str]
    gives: str
    call: Callable[..., pa.Array]


@dataclass(frozen=True, slots=True)
class Span:
    """When a run went on, its time 0, and its faults' effects: name, from, to."""

    run: str
    begin_ns: int
    end_ns: int
    zero_ns: int
    faults: tuple[tuple[str, int, int], ...]


def span(run: str, record: RunRecord, faults: Sequence[Mapping[str, Any]]) -> Span | None:
    """Of a run, by its record and its rows of `faults`; None if it never began."""
    times = record.times
    if times.started_ns is None or times.zero_ns is None:
        return None
    end_ns = times.ended_ns or (1 << 62)
    effects = tuple(
        (row["fault"], row["from_ns"], row["to_ns"] or end_ns) for row in faults if row["from_ns"] is not None
    )
    return Span(run, times.started_ns, end_ns, times.zero_ns, effects)


def functions(spans: Sequence[Span]) -> dict[str, Function]:
    """All functions, for questions about these runs."""
    times = _Times(tuple(sorted(spans, key=lambda each: each.begin_ns)))
    return {
        "ip": Function({"hi": "BIGINT", "lo": "BIGINT"}, "VARCHAR", ip),
        "since_start": Function({"t_ns": "BIGINT"}, "DOUBLE", times.since_start),
        "during": Function({"fault": "VARCHAR", "t_ns": "BIGINT"}, "BOOLEAN", times.during),
    }


def ip(hi: Array, lo: Array) -> pa.Array:
    """Addresses as text."""
    highs, high_places = np.unique(_integers(hi), return_inverse=True)
    lows, low_places = np.unique(_integers(lo), return_inverse=True)
    pairs, places = np.unique(high_places * len(lows) + low_places, return_inverse=True)
    halves = [(int(highs[pair // len(lows)]), int(lows[pair % len(lows)])) for pair in pairs]
    names = pa.array([_address(high, low) for high, low in halves], pa.string())
    return names.take(pa.array(places, mask=~(_known(hi) & _known(lo))))


@dataclass(frozen=True, slots=True)
class _Times:
    """Runs in order of their begin."""

    spans: tuple[Span, ...]

    def since_start(self, t_ns: Array) -> pa.Array:
        """Seconds; null at times when no run went on."""
        times, place = self._placed(t_ns)
        zeros = np.array([each.zero_ns for each in self.spans] or [0])
        return pa.array((times - zeros[place]) / 1e9, mask=place < 0)

    def during(self, fault: Array, t_ns: Array) -> pa.Array:
        """True or false; null at times when no run went on."""
        times, place = self._placed(t_ns)
        found = np.zeros(len(times), dtype=bool)
        for number, each in enumerate(self.spans):
            for name, from_ns, to_ns in each.faults:
                asked = np.asarray(pc.equal(fault, name).fill_null(False))
                found |= (place == number) & asked & (from_ns <= times) & (times < to_ns)
        return pa.array(found, mask=place < 0)

    def _placed(self, t_ns: Array) -> tuple[Any, Any]:
        """Times, and which run each is of; -1: none's."""
        for one, other in zip(self.spans, self.spans[1:], strict=False):
            if other.begin_ns < one.end_ns:
                problem = "went on at once, so that a time is not one's alone"
                raise AnalysisError(f"{one.run} and {other.run} {problem}: ask one, or use runs.zero_ns")
        times, known = _integers(t_ns), _known(t_ns)
        begins = np.array([each.begin_ns for each in self.spans], dtype=np.int64)
        place = np.searchsorted(begins, times, "right") - 1
        ends = np.array([each.end_ns for each in self.spans] or [0], dtype=np.int64)
        return times, np.where(known & (times <= ends[place]), place, -1)


def _integers(array: Array) -> Any:
    return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)


def _known(array: Array) -> Any:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool)


def _address(hi: int, lo: int) -> str:
    if hi == 0 and 0 <= lo < 1 << 32:
        return str(IPv4Address(lo))
    return str(IPv6Address((hi & _64_BITS) << 64 | (lo & _64_BITS)))
