"""What the report is made from: run.json, summary.json and the timelines' Parquet tables of one run, read
once.

Everything is optional but run.json and summary.json: a crashed run may have no tables, a run without
captures no links. What is missing is named, so that the page can say so. Spark is not needed and not
imported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.capture.clocks.machines import ONE_CLOCK, Clocks
from analysis.capture.clocks.making import read_details, read_on_reference
from analysis.errors import refuse
from analysis.timelines.facts import owners
from experiments.rundir import RunDirectory

Row = Mapping[str, Any]

TABLES = ("throughput", "latency", "recovery", "fidelity")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as the report sees it. Tables are tuples of rows, in the file's order; empty where missing."""

    run: Row
    summary: Row
    throughput: tuple[Row, ...]
    latency: tuple[Row, ...]
    recovery: tuple[Row, ...]
    fidelity: tuple[Row, ...]
    missing: tuple[str, ...]  # names of tables that are not there
    chains: tuple[Row, ...] = ()  # configurations; runs of before they were collected have no table of them
    captures: tuple[Row, ...] = ()  # what of each capture could be used
    clocks: Clocks = ONE_CLOCK
    machines: tuple[Row, ...] = ()  # what is known of each machine's clock; empty where there is one clock

    @property
    def name(self) -> str:
        """The run directory's name."""
        return str(self.run.get("run") or self.summary.get("run") or "")

    @property
    def experiment(self) -> Row:
        """The resolved experiment."""
        return self.run.get("experiment") or {}

    @property
    def plan(self) -> Row:
        """The plan; empty when the run crashed before it was made."""
        return self.run.get("plan") or {}

    @property
    def regions(self) -> tuple[str, ...]:
        """Names of the regions in the topology's order, on which colours hang."""
        return tuple(region["name"] for region in self.plan.get("regions", ()))

    def origin(self, stream: int) -> str:
        """The region in which a stream is numbered."""
        return owners(self.plan).get(stream, "?") if self.plan.get("regions") else "?"

    @property
    def wan_links(self) -> tuple[Row, ...]:
        """The plan's WAN links."""
        return tuple(link for link in self.plan.get("links", ()) if link.get("kind") == "wan")

    @property
    def duration_s(self) -> float:
        """Planned length in seconds, without the drain."""
        return float(self.plan.get("duration_us") or 0) / 1e6

    @property
    def length_s(self) -> float:
        """Length in seconds, without the drain: as planned, or less if the run ended before that."""
        times = self.run.get("times") or {}
        ended_ns = times.get("stopped_ns") or times.get("ended_ns")
        if ended_ns is None or ended_ns <= (zero_ns := times.get("zero_ns") or ended_ns):
            return self.duration_s
        return min(self.duration_s, float(ended_ns - zero_ns) / 1e9)

    @property
    def interrupted(self) -> bool:
        """Whether someone ended it before its time."""
        return self.run.get("outcome") == "interrupted"

    @property
    def verdict(self) -> str:
        """passed, failed, invalid or crashed."""
        return str(self.summary.get("verdict") or "crashed")

    @property
    def valid(self) -> bool:
        """Whether the run's numbers can be believed."""
        return (self.summary.get("fidelity") or {}).get("valid") is True

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the run cannot be believed."""
        return tuple((self.summary.get("fidelity") or {}).get("reasons") or ())

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be measured, and why."""
        return tuple((self.summary.get("fidelity") or {}).get("notes") or ())

    @property
    def problems(self) -> tuple[str, ...]:
        """What was noted while it ran."""
        return tuple(self.run.get("problems") or ())

    @property
    def captured(self) -> bool:
        """Whether packets were captured at all."""
        return bool(self.plan.get("captures"))


def read_record(directory: RunDirectory) -> RunRecord:
    """Read a run directory. Raises InputError when there is no run, or no analysis of it yet."""
    run, clocks = read_on_reference(directory)
    if not directory.summary_json.exists():
        refuse(directory)
    tables = {name: _read_table(directory.table(name)) for name in TABLES}
    return RunRecord(
        run=run,
        clocks=clocks,
        machines=tuple(read_details(directory)),
        summary=directory.read_summary(),
        throughput=tables["throughput"] or (),
        latency=tables["latency"] or (),
        recovery=tables["recovery"] or (),
        fidelity=tables["fidelity"] or (),
        chains=_read_table(directory.table("chains")) or (),
        captures=_read_table(directory.table("captures")) or (),
        missing=tuple(name for name, rows in tables.items() if rows is None),
    )


def _read_table(path: Path) -> tuple[Row, ...] | None:
    """All rows, or None when there is no such table (or only the torn start of one, after a crash)."""
    if not path.exists():
        return None
    try:
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    except (pa.ArrowInvalid, OSError):
        return None  # the page says that the table is missing; `cutset analyze` writes it anew
    return tuple(rows)
