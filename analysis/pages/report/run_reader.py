"""Input of the report: run.json, summary.json and the timelines' Parquet tables of one run, read once.

All but run.json and summary.json is optional: a crashed run may have no tables, a run without captures no
links. Missing tables are listed, so that the page can report them. Spark is not needed and not imported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.capture.clocks.clocks_file import read_machines
from analysis.capture.clocks.machine_clocks import ONE_CLOCK, MachineClocks, read_on_reference
from analysis.errors import raise_not_analysed
from analysis.parquet_files import read_any
from analysis.schemas import CAPTURES
from analysis.timelines import schemas
from experiments.planned.plan import LinkPlan, Plan
from experiments.records.run_record import Outcome, RunRecord
from experiments.records.rundir import RunDirectory

Row = Mapping[str, Any]

TABLES = {
    "throughput": schemas.THROUGHPUT,
    "latency": schemas.LATENCY,
    "recovery": schemas.RECOVERY,
    "fidelity": schemas.FIDELITY,
}
_SHOWN = {"throughput": pc.field("scope") != "stream", "recovery": pc.field("affected")}
"""The rows that pages show; the summary has the sums of the many others."""


@dataclass(frozen=True)
class AnalysedRun:
    """A run as the report uses it. Tables are tuples of rows, in the file's order; empty if missing."""

    run: RunRecord
    summary: Row
    throughput: tuple[Row, ...]  # of regions and links
    latency: tuple[Row, ...]
    recovery: tuple[Row, ...]  # of affected pairs
    fidelity: tuple[Row, ...]
    missing: tuple[str, ...]  # names of missing tables
    tcp_outages: tuple[Row, ...] = ()  # TCP connections across links that came back
    chains: tuple[Row, ...] = ()  # configurations
    captures: tuple[Row, ...] = ()  # usable and unusable parts of each capture
    clocks: MachineClocks = ONE_CLOCK
    machines: tuple[Row, ...] = ()  # details of each machine's clock; empty if there is one clock

    @property
    def name(self) -> str:
        """The run directory's name."""
        return self.run.run or str(self.summary.get("run") or "")

    @property
    def experiment(self) -> Row:
        """The resolved experiment."""
        return self.run.experiment

    @property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self.run.plan

    @property
    def regions(self) -> tuple[str, ...]:
        """Names of the regions in the topology's order, which determines their colours."""
        return tuple(region.name for region in self.plan.regions)

    def origin(self, stream: int) -> str:
        """Return the region in which a stream is numbered."""
        return self._owners.get(stream, "?")

    @cached_property
    def _owners(self) -> Mapping[int, str]:
        return {stream.number: stream.region for stream in self.plan.streams}

    @cached_property
    def wan_links(self) -> tuple[LinkPlan, ...]:
        """The plan's WAN links."""
        return tuple(link for link in self.plan.links if link.kind == "wan")

    @property
    def duration_s(self) -> float:
        """Planned length in seconds, without the drain."""
        return self.plan.duration_us / 1e6

    @property
    def length_s(self) -> float:
        """Length in seconds, without the drain: as planned, or less if the run ended before that."""
        times = self.run.times
        ended_ns = times.stopped_ns or times.ended_ns
        if ended_ns is None or ended_ns <= (zero_ns := times.zero_ns or ended_ns):
            return self.duration_s
        return min(self.duration_s, (ended_ns - zero_ns) / 1e9)

    @property
    def interrupted(self) -> bool:
        """Whether a user ended it early."""
        return self.run.outcome is Outcome.INTERRUPTED

    @property
    def verdict(self) -> str:
        """passed, failed, invalid or crashed."""
        return str(self.summary.get("verdict") or "crashed")

    @property
    def valid(self) -> bool:
        """Whether the run's numbers are reliable."""
        return (self.summary.get("fidelity") or {}).get("valid") is True

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons why the run is not valid."""
        return tuple((self.summary.get("fidelity") or {}).get("reasons") or ())

    @property
    def notes(self) -> tuple[str, ...]:
        """Figures that could not be measured, with reasons."""
        return tuple((self.summary.get("fidelity") or {}).get("notes") or ())

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems recorded during the run."""
        return self.run.problems

    @property
    def captured(self) -> bool:
        """Whether packets were captured: in virtual time there are none, whatever the plan says."""
        return bool(self.plan.captures) and not self.run.simulated


def read_record(directory: RunDirectory) -> AnalysedRun:
    """Read a run directory. Raises InputError if there is no run, or no analysis of it yet."""
    run, clocks = read_on_reference(directory)
    if not directory.summary_json.exists():
        raise_not_analysed(directory)
    found = {
        name: read_any(directory.table(name), schema, _SHOWN.get(name)) for name, schema in TABLES.items()
    }
    tables = {name: None if each is None else tuple(each.to_pylist()) for name, each in found.items()}
    return AnalysedRun(
        run=run,
        clocks=clocks,
        machines=tuple(read_machines(directory)),
        summary=directory.read_summary(),
        throughput=tables["throughput"] or (),
        latency=tables["latency"] or (),
        recovery=tables["recovery"] or (),
        fidelity=tables["fidelity"] or (),
        tcp_outages=_rows(directory.table("tcp_outages"), schemas.TCP_OUTAGES),
        chains=_rows(directory.table("chains"), schemas.CHAINS),
        captures=_rows(directory.table("captures"), CAPTURES),
        missing=tuple(name for name, rows in tables.items() if rows is None),
    )


def _rows(path: Path, schema: pa.Schema) -> tuple[Row, ...]:
    found = read_any(path, schema)
    return () if found is None else tuple(found.to_pylist())
