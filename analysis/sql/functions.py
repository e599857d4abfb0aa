"""SQL functions in addition to DuckDB's own.

`ip(hi, lo)`: an address of `packets` as text (RFC 5952). `since_start(t_ns)`: seconds since time 0 of the run
at that time. `during(fault, t_ns)`: whether the effect of the named fault lasted at that time.

A time belongs to the run during which it was. If runs overlap, as on several machines, a time is ambiguous,
and `since_start` and `during` raise an error.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from analysis.capture.pcap.streams import format_address
from experiments.records.run_record import RunRecord

Array: TypeAlias = "pa.Array | pa.ChunkedArray"


@dataclass(frozen=True, slots=True)
class RunSpan:
    """The time span of a run, its time 0, the names of its faults, and their effects: name, from, to."""

    run: str
    begin_ns: int
    end_ns: int
    zero_ns: int
    names: frozenset[str]
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
    names = frozenset(each.name for each in record.plan.faults)
    return RunSpan(run, times.started_ns, end_ns, times.zero_ns, names, effects)


def literal(text: str) -> str:
    """Quote a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def macros(spans: Iterable[RunSpan]) -> dict[str, str]:
    """Return the functions of times of these runs: their SQL by name and parameters."""
    ordered = sorted(spans, key=lambda each: each.begin_ns)
    for one, other in pairwise(ordered):
        if other.begin_ns < one.end_ns:
            problem = f"{one.run} and {other.run} overlap in time, so a time does not identify a run"
            unknown = f"error({literal(problem + ': query one, or use runs.zero_ns')})"
            return {"since_start(t_ns)": unknown, "during(fault, t_ns)": unknown}
    return {
        "since_start(t_ns)": _by_run(
            ordered, [f"(t_ns - {each.zero_ns}) / 1e9" for each in ordered], "DOUBLE"
        ),
        "during(fault, t_ns)": _of_a_fault(ordered, _by_run(ordered, map(_lasts, ordered), "BOOLEAN")),
    }


def _of_a_fault(spans: Iterable[RunSpan], value: str) -> str:
    """Return a value, or an error if no run has a fault of the name `fault`."""
    names = sorted(frozenset[str]().union(*(each.names for each in spans)))
    if not names:
        return value
    known, listed = ", ".join(map(literal, names)), literal(f", …): the faults are {', '.join(names)}")
    return f"CASE WHEN fault NOT IN ({known}) THEN error('during(' || fault || {listed}) ELSE {value} END"


def _by_run(spans: Sequence[RunSpan], values: Iterable[str], kind: str) -> str:
    """Return the value of the run to which `t_ns` belongs; null for none."""
    cases = (
        f" WHEN t_ns BETWEEN {each.begin_ns} AND {each.end_ns} THEN {value}"
        for each, value in zip(spans, values, strict=True)
    )
    return f"CAST(CASE{''.join(cases)} WHEN false THEN NULL END AS {kind})"


def _lasts(span: RunSpan) -> str:
    effects = (
        f"(fault = {literal(name)} AND t_ns >= {from_ns} AND t_ns < {to_ns})"
        for name, from_ns, to_ns in span.faults
    )
    return f"coalesce({' OR '.join(['false', *effects])}, false)"


def ip(hi: Array, lo: Array) -> pa.Array:
    """Format addresses as text."""
    highs, high_places = np.unique(_integers(hi), return_inverse=True)
    lows, low_places = np.unique(_integers(lo), return_inverse=True)
    pairs, places = np.unique(high_places * len(lows) + low_places, return_inverse=True)
    halves = [(int(highs[pair // len(lows)]), int(lows[pair % len(lows)])) for pair in pairs]
    names = pa.array([format_address(high, low) for high, low in halves], pa.string())
    return names.take(pa.array(places, mask=~(_known(hi) & _known(lo))))


def _integers(array: Array) -> Any:
    return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)


def _known(array: Array) -> Any:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
