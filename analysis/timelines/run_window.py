"""The time window of a run, and packets and records dated outside of it.

A time stamp may be wrong: of one packet in a damaged capture, of all since a clock was set, or of time 0
itself. Bins and axes end with the run plus a margin. Data outside is counted, reported, and excluded from
measurements over time. It still counts as received.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import Bools, Ints, concatenated, ints, rows
from analysis.timelines import schemas
from topologies.first_texts import listed

MARGIN_NS = 60_000_000_000
"""Before the start and after the end: connecting and probing, and late arrivals."""
LEAD_NS_MAX = 3_600_000_000_000
"""For a run with an unknown start."""
LENGTH_NS_MAX = 48 * 3_600_000_000_000
"""Window of longer runs, and of runs with an unknown end."""
NAMED_MAX = 4
_UNITS = ((86_400 * 365, "years"), (86_400, "days"), (3_600, "hours"), (60, "minutes"))


@dataclass(frozen=True, slots=True)
class RunWindow:
    """The interval [first_ns, end_ns) by the run's reference clock. problem: why its own times are
    implausible.
    """

    first_ns: int
    end_ns: int
    problem: str | None = None

    def holds(self, t_ns: Ints) -> Bools:
        """Return which of these times lie within."""
        return (t_ns >= self.first_ns) & (t_ns < self.end_ns)


def window_of(zero_ns: int, started_ns: int | None, ended_ns: int | None) -> RunWindow:
    """Return the window from the run's recorded start, time 0 and end, as far as they are known."""
    problem = None
    if started_ns is not None and zero_ns < started_ns - MARGIN_NS:
        problem = f"time 0 lies {long_time(started_ns - zero_ns)} before the run started"
    elif started_ns is not None and ended_ns is not None and zero_ns > ended_ns + MARGIN_NS:
        problem = f"time 0 lies {long_time(zero_ns - ended_ns)} after the run ended"
    if problem is not None:
        return RunWindow(
            zero_ns - MARGIN_NS, zero_ns + MARGIN_NS, f"{problem}: nothing can be measured by it"
        )
    lead_ns = LEAD_NS_MAX if started_ns is None else min(zero_ns - started_ns, LENGTH_NS_MAX)
    length_ns = LENGTH_NS_MAX if ended_ns is None else min(ended_ns - zero_ns, LENGTH_NS_MAX)
    return RunWindow(zero_ns - lead_ns - MARGIN_NS, zero_ns + max(length_ns, 0) + MARGIN_NS)


def outside(place: str, what: str, t_ns: Ints, window: RunWindow) -> pa.Table:
    """Return `schemas.OUTSIDE`: how many messages, packets or records of a place are outside the window."""
    misdated = t_ns[~window.holds(t_ns)]
    if not len(misdated):
        return schemas.OUTSIDE.empty_table()
    row = {"place": place, "what": what, "count": len(misdated), "of": len(t_ns)}
    times = {"first_ns": int(misdated.min()), "last_ns": int(misdated.max())}
    return pa.Table.from_pylist([row | times], schema=schemas.OUTSIDE)


def outside_by_host(what: str, table: pa.Table, window: RunWindow) -> pa.Table:
    """Return `schemas.OUTSIDE` of rows with a host and a time."""
    misdated = table.filter(pa.array(~window.holds(ints(table, "t_ns"))))
    hosts = misdated.column("host").unique()
    mine = table.filter(pc.is_in(table.column("host"), value_set=hosts))
    found = [outside(host, what, ints(rows(mine, host=host), "t_ns"), window) for host in hosts.to_pylist()]
    return concatenated(found, schemas.OUTSIDE)


def notes(found: pa.Table, window: RunWindow) -> list[str]:
    """Return notes on data outside the window, naming the worst places."""
    lines = []
    for what in found.column("what").unique().to_pylist():
        rows = [row for row in found.to_pylist() if row["what"] == what]
        rows.sort(key=lambda row: -row["count"])
        named = listed((f"{row['place']} ({row['count']} of {row['of']})" for row in rows), NAMED_MAX)
        count = int(ints(found, "count")[np.array(found.column("what").to_pylist()) == what].sum())
        lines.append(
            f"{count} {what} of {named} have times outside the run,"
            f" {_how_far(rows, window)}: excluded from measurements over time"
        )
    return lines


def _how_far(rows: Iterable[dict[str, Any]], window: RunWindow) -> str:
    before = max((window.first_ns + MARGIN_NS - row["first_ns"] for row in rows), default=0)
    after = max((row["last_ns"] - window.end_ns + MARGIN_NS for row in rows), default=0)
    ways = [(after, "after its end"), (before, "before its start")]
    return " and ".join(f"up to {long_time(ns)} {way}" for ns, way in ways if ns > MARGIN_NS)


def long_time(ns: int) -> str:
    """Return a time of seconds to years, in words."""
    seconds = ns / 1e9
    for unit_s, name in _UNITS:
        if seconds >= 2 * unit_s:
            return f"{seconds / unit_s:.0f} {name}"
    return f"{seconds:.0f} s"
