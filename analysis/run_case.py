"""A run to be analysed: which captures and records it has, and what can be read from them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.capture.clocks.machine_clocks import on_reference
from analysis.capture.clocks.run_clocks import make_clocks
from analysis.capture.unread import unread
from analysis.jobs.work import Workers
from analysis.messages.marked import known_codec, known_reading
from analysis.timelines.agreement import damaged_hosts
from analysis.timelines.recovering import failover_events
from analysis.timelines.recovering.failover_events import FailoverEvent
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from experiments.declared import Trait
from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory
from node.core.declaration import Marked
from node.core.deliveries import HEADER, RECORD


@dataclass(frozen=True, slots=True)
class AnalysisCase:
    """A run to be analysed: which captures and records it has, and what can be read from them."""

    run: RunDirectory
    record: RunRecord
    metadata: RunMetadata
    hosts: bool  # any host has a capture
    decoded: bool  # and its messages can be decoded and name their events
    links: bool  # any link has a capture
    recorded: bool  # any driver or client left a record of deliveries
    taken: bool  # any proxy left a record of when it accepted events
    logged: list[FailoverEvent]

    @property
    def anything(self) -> bool:
        """Whether there is anything to be analysed."""
        return self.hosts or self.links or self.recorded


def open_case(run: RunDirectory, workers: Workers, progress: Callable[[str], None]) -> AnalysisCase:
    """Return what is available of a run. Raises AnalysisError or InputError if its record or folders are
    invalid.
    """
    run.check_folders()
    record = run.read_run()
    clocks = make_clocks(run, record, workers, progress)
    record = on_reference(record, clocks)
    metadata, wires = read_metadata(record, clocks), record.wires
    there = [
        each for each in record.listed_captures if each.name not in wires and run.capture(each.name).is_file()
    ]
    writers = (*metadata.having(Trait.PUBLISHER), *metadata.clients)
    hosts = any(capture.host for capture in there)
    return AnalysisCase(
        run=run,
        record=record,
        metadata=metadata,
        hosts=hosts,
        decoded=hosts and bool(metadata.reading.carries) and known_codec(metadata.declared) is not None,
        links=any(capture.link for capture in there),
        recorded=any(run.host_deliveries(name).is_file() for name in writers),
        taken=any(_records(run, name) for name in metadata.having(Trait.SERVER)),
        logged=failover_events.from_logs(run, metadata),
    )


def without_unread_messages(case: AnalysisCase) -> AnalysisCase:
    """Treat the run as one without decoded events if any connection could not be read."""
    why = unread(case.run) if case.decoded else ""
    if not why:
        return case
    declared = replace(case.metadata.declared, marked=Marked("never", why))
    metadata = replace(case.metadata, declared=declared, reading=known_reading(declared))
    return replace(case, metadata=metadata, decoded=False)


def _records(run: RunDirectory, host: str) -> bool:
    path = run.host_deliveries(host)
    return path.is_file() and path.stat().st_size > HEADER.size + RECORD.size  # more than a session's start


def counted_clients(case: AnalysisCase) -> tuple[str, ...]:
    """Return the clients that count for latency and recovery: those with complete captures.

    If the run did not complete, all clients count: their captures are cut off, but valid up to that point.
    """
    clients = case.metadata.clients
    if not case.decoded or case.metadata.outcome != "completed":
        return clients
    incomplete = damaged(case)
    return tuple(name for name in clients if name not in incomplete) or clients


def damaged(case: AnalysisCase) -> dict[str, str]:
    """Return the hosts with incomplete captures, and the reasons."""
    return damaged_hosts(case.record, decoding(case), pq.read_table(case.run.table("captures")))


def decoding(case: AnalysisCase) -> pa.Table:
    """Return how far each connection could be decoded: `analysis.schemas.DECODING`."""
    return pq.read_table(case.run.table("decoding"))
