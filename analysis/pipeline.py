"""The analysis of a run, whole: captures to packets and messages, to events, to timelines, to summary.json.

Reads the run directory and nothing else, and may be run again at any time with the same result: tables are
written beside their place and moved there when whole, summary.json last. It takes what there is: of a run
that crashed or was interrupted, what was captured; of one without captures, what the nodes wrote down, and
says so. What cannot be measured is null with a reason in the summary. The steps themselves are in
`analysis.timelines`; see there.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analysis import tables
from analysis.capture.clocks import run_clocks as clock_notes
from analysis.capture.clocks.machine_clocks import on_reference, read_details
from analysis.capture.clocks.run_clocks import make_clocks
from analysis.capture.tls.unread import unread
from analysis.jobs import transfers
from analysis.jobs.choice import WorkersFor, workers_at
from analysis.jobs.work import InlineWorkers, ProcessPool, Workers
from analysis.messages.marked import known_codec, known_reading
from analysis.schemas import TRANSFERS
from analysis.tables import in_the_making
from analysis.timelines import (
    convergence,
    failover_events,
    latency,
    recovery_table,
    schemas,
    strangers,
    throughput,
    traffic,
    wan,
)
from analysis.timelines.agreement import compare, damaged_hosts, unfit_hosts
from analysis.timelines.confirmations import planned_subscriptions
from analysis.timelines.content import ContentFiles
from analysis.timelines.expected import by_topic, for_everybody
from analysis.timelines.failover_events import FailoverEvent
from analysis.timelines.link_causes import with_causes
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from analysis.timelines.run_window import notes as outside_notes
from analysis.timelines.schemas import EVENTS, FIDELITY, MEASURES
from analysis.timelines.summary import Findings, summarize
from analysis.timelines.tasks.following import FollowStreams
from analysis.timelines.tasks.packets import MeasureLink, MessagesToEvents
from analysis.timelines.tasks.records import (
    CheckClients,
    CheckPublisher,
    CompareOrder,
    CountMatches,
    Files,
    ReadMeasures,
    RecordFiles,
    SortRecords,
)
from analysis.timelines.tasks.results import Task, carry_out, nothing, write
from analysis.timelines.total_order import with_disorder
from analysis.timelines.traversals import LinkTraversal, traversals
from experiments.declared import Trait
from experiments.json_files import write_json
from experiments.run_record import RunRecord
from experiments.rundir import RunDirectory
from experiments.whole_files import remove
from node.core.declaration import Marked
from node.core.deliveries import HEADER, RECORD

Results = dict[str, pa.Table]

NO_LINK_CAPTURES = "there are no captures of links: what they did was not measured"
NO_HOST_CAPTURES = "there are no captures of hosts: events rest on what clients and publishers wrote down"
NOT_DECODED = "the messages of {} are not known here{}: events rest on what clients and publishers wrote down"
FROM_ACKNOWLEDGEMENT = "latency counts from the publisher's record: no server wrote down when it took events"
NO_RECORDS = "the nodes left no records of deliveries: events could not be counted"


_TABLES = {"events": EVENTS, "transfers": TRANSFERS, "measures": MEASURES}
"""Tables that many tasks write, a file each."""
RECORDS = "records"
"""What the nodes wrote down, in order of stream, while streams are followed."""
FOLLOWED = ("samples", "untimed", "pairs", "coverage", "convergence", "wan_copies")
"""What following streams gives."""
STREAM_TASKS_MAX = 64
"""So many tasks follow streams at most: each reads what there is once, for its share of them."""
TASK_BYTES = 4 << 20
"""Of records, which a worker takes apart to some ten times as much."""
PAIRS_TOGETHER = 1 << 24
"""Clients with events in a task, where each may be to get each."""
GROUPS_TOGETHER = 1 << 17
"""Clients with streams in a task, each of which takes memory there, whatever came to it."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A run to be analysed, and what there is of it."""

    run: RunDirectory
    record: RunRecord
    metadata: RunMetadata
    hosts: bool  # whether there is a capture of any host
    decoded: bool  # whether its messages can be decoded, too, and say which events they carry
    links: bool  # whether there is a capture of any link
    recorded: bool  # whether any driver or client left a record of deliveries
    taken: bool  # whether any proxy did: of when it took events
    logged: list[FailoverEvent]


def analyze(
    run: RunDirectory,
    *,
    workers_for: WorkersFor | None = None,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Analyse a run: write its tables and summary.json, and return the summary.

    workers_for: who does the work (`analysis.jobs.choice.workers_at`); None uses this machine. progress: told
    each step as it begins. Raises AnalysisError or InputError when there is nothing that could be analysed,
    no cluster, or a folder of the run is a link.
    """
    run = RunDirectory(run.path.absolute())  # whoever does the work may stand in another folder
    case = _open(run, ProcessPool.of_this_machine(), progress)
    if not _anything(case):
        return _analyze(case, progress, InlineWorkers())
    run.analysis.mkdir(exist_ok=True)
    with ExitStack() as stack:
        found = workers_for or stack.enter_context(workers_at())
        return _analyze(case, progress, stack.enter_context(found(run, progress)))


def analyze_here(run: RunDirectory, *, progress: Callable[[str], None]) -> dict[str, Any]:
    """The same in this process, one task after the other: for within Spark's tasks.

    Raises AnalysisError or InputError as `analyze`.
    """
    here = InlineWorkers()
    return _analyze(_open(run, here, progress), progress, here)


def _analyze(case: _Case, progress: Callable[[str], None], workers: Workers) -> dict[str, Any]:
    run = case.run
    run.analysis.mkdir(exist_ok=True)
    if case.hosts or case.links:
        progress("reading packets and messages")
        tables.extract(workers, run)
        case = _as_far_as_read(case)
    results = _results(case, workers, progress) if _anything(case) else nothing()
    progress("summing up")
    summary = summarize(case.record, case.metadata, _findings(case, results))
    write_json(run.summary_json, summary)
    return summary


def _anything(case: _Case) -> bool:
    return case.hosts or case.links or case.recorded


def _open(run: RunDirectory, workers: Workers, progress: Callable[[str], None]) -> _Case:
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
    return _Case(
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


def _as_far_as_read(case: _Case) -> _Case:
    """If not all TLS connections could be read, packets count as those of a system that shows no events."""
    why = unread(case.run) if case.decoded else ""
    if not why:
        return case
    declared = replace(case.metadata.declared, marked=Marked("never", why))
    metadata = replace(case.metadata, declared=declared, reading=known_reading(declared))
    return replace(case, metadata=metadata, decoded=False)


def _records(run: RunDirectory, host: str) -> bool:
    path = run.host_deliveries(host)
    return path.is_file() and path.stat().st_size > HEADER.size + RECORD.size  # more than a session's start


def _results(case: _Case, workers: Workers, progress: Callable[[str], None]) -> Results:
    """What all tasks returned, together; the table of events is written."""
    run, metadata = case.run, case.metadata
    progress("following events")
    in_packets = case.decoded and not metadata.by_host and for_everybody(metadata)
    written = None if in_packets else RecordFiles(run.table(RECORDS))
    made = _TABLES | ({RECORDS: schemas.RECORDS} if written else {})
    with in_the_making(run, made) as folders:
        results = carry_out(workers, _first_tasks(case, folders), "turning messages into events")
    progress("following streams")
    sources, clients = failover_events.sources(case.logged, metadata), _clients(case)
    events = run.table("events") if case.decoded else None
    content = ContentFiles.of(run, metadata, clients)
    streams: list[Task] = [
        FollowStreams(some, events, written, metadata, clients, logged, content)
        for some in _shared_out(sorted(metadata.owner), STREAM_TASKS_MAX)
        if (logged := {stream: sources[stream] for stream in some if stream in sources}) is not None
    ]
    followed = carry_out(workers, streams, "following streams")
    results["deliveries"] = with_disorder(results["deliveries"], results["disorder"])
    remove(run.table(RECORDS))  # what the nodes left says the same
    return results | {name: followed[name] for name in FOLLOWED}


def _not_decoded(metadata: RunMetadata) -> str:
    declared = metadata.declared
    return NOT_DECODED.format(declared.name, f" ({declared.marked.why})" if declared.marked else "")


def _files(run: RunDirectory, hosts: Sequence[str]) -> tuple[Files, ...]:
    return tuple((host, run.host_deliveries(host)) for host in hosts)


def _first_tasks(case: _Case, folders: Mapping[str, Path]) -> list[Task]:
    """Everything that does not need the events of all hosts."""
    run, metadata, contract = case.run, case.metadata, case.metadata.declared.contract
    drivers = _files(run, metadata.having(Trait.PUBLISHER))
    written = RecordFiles(folders[RECORDS]) if RECORDS in folders else None

    def beside(trait: Trait, number: int) -> Path | None:
        return written.file(trait, number) if written else None

    messages = sorted(run.table("messages").glob("*.parquet")) if case.decoded else []
    planned = planned_subscriptions(case.record.plan, metadata)
    content = ContentFiles.of(run, metadata, metadata.clients)
    marks = tuple(path for name, _ in drivers if (path := run.host_collection(name)).is_file())
    links: dict[str, list[LinkTraversal]] = {}
    for traversal in traversals(case.record.plan) if case.links else ():
        links.setdefault(traversal.direction[0], []).append(traversal)
    return [
        *(MessagesToEvents(file, folders["events"], metadata) for file in messages),
        *(transfers.tasks(run, metadata.host_at, folders["transfers"]) if case.hosts else ()),
        *(MeasureLink(run.table("packets"), tuple(both), metadata) for both in links.values()),
        *(
            CheckClients(
                clients,
                drivers,
                marks,
                metadata,
                not case.decoded or metadata.by_host,
                ContentFiles.of(run, metadata, (name for name, _ in clients)),
                {name: planned.get(name, ()) for name, _ in clients} if planned else {},
                beside(Trait.SUBSCRIBER, number),
            )
            for number, clients in enumerate(
                _together(_files(run, metadata.clients), _clients_together(run, metadata))
            )
        ),
        *(CheckPublisher(name, path, metadata.clocks) for name, path in drivers),
        *(
            ReadMeasures(name, path, folders["measures"], metadata.clocks)
            for name in metadata.hosts
            if (path := run.host_measures(name)).is_file()
        ),
        *([CompareOrder(_files(run, metadata.clients), metadata)] if contract.order == "total" else ()),
        *([CountMatches(content, metadata)] if content else ()),
        *(
            SortRecords(files, followed, metadata.clocks)
            for trait in (Trait.PUBLISHER, Trait.SERVER)
            for number, files in enumerate(_together(_files(run, metadata.having(trait))))
            if (followed := beside(trait, number)) is not None
        ),
    ]


def _shared_out(streams: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """Streams in at most so many shares, alike in size, of neighbours."""
    ends = np.linspace(0, len(streams), min(most, len(streams)) + 1).astype(int).tolist()
    return [tuple(streams[low:high]) for low, high in pairwise(ends)]


def _clients_together(run: RunDirectory, metadata: RunMetadata) -> int:
    """Of how many clients a task has every stream, where all are to get everything; or every event, where any
    may be for each of them, whether it came or not.
    """
    audience = metadata.declared.contract.audience
    if audience == "all":
        return max(1, GROUPS_TOGETHER // max(1, len(metadata.owner)))
    if audience == "content":
        written = (path for _, path in _files(run, metadata.having(Trait.PUBLISHER)) if path.is_file())
        events = sum(path.stat().st_size for path in written) // RECORD.size
        return max(1, PAIRS_TOGETHER // max(1, events))
    return len(metadata.clients)


def _together(files: Sequence[Files], most: int | None = None) -> list[tuple[Files, ...]]:
    """Files put together until they are worth a task: thousands of clients may write little each. most: so
    many at most.
    """
    found: list[list[Files]] = []
    size = 0
    for host, path in files:
        grown = path.stat().st_size if path.is_file() else 0
        if not found or size + grown > TASK_BYTES or len(found[-1]) == most:
            found.append([])
            size = 0
        found[-1].append((host, path))
        size += grown
    return [tuple(together) for together in found]


def _clients(case: _Case) -> tuple[str, ...]:
    """The clients that count for latency and recovery: those whose captures are whole.

    Of a run that did not come to its end all do: their captures are torn, but tell everything until then.
    """
    clients = case.metadata.clients
    if not case.decoded or case.metadata.outcome != "completed":
        return clients
    damaged = _damaged(case)
    return tuple(name for name in clients if name not in damaged) or clients


def _damaged(case: _Case) -> dict[str, str]:
    """The hosts whose captures are not whole, and why."""
    decoding, captures = (pq.read_table(case.run.table(name)) for name in ("decoding", "captures"))
    return damaged_hosts(case.record, decoding, captures)


def _findings(case: _Case, results: Results) -> Findings:
    """The timelines, written as tables, and what of them goes into the summary."""
    run, metadata = case.run, case.metadata
    deliveries = results["deliveries"] if case.recorded else None
    asked = failover_events.from_subscriptions(results["subscriptions"], metadata)
    recovery = recovery_table.table(results["pairs"], [*asked, *case.logged], deliveries, metadata)
    links = with_causes(results["fidelity"].to_pylist(), case.record, metadata)
    others = results["traffic"] if case.links and metadata.traffic else None
    reports = traffic.read_reports(run, metadata)
    timelines = {
        "throughput": throughput.table(
            results["arrivals"],
            results["wire"] if case.links else None,
            metadata,
            results["followed"] if by_topic(metadata) and case.recorded else None,
            others,
        ),
        "latency": latency.table(results["samples"], metadata),
        "recovery": recovery,
        "fidelity": pa.Table.from_pylist(links, schema=FIDELITY),
        "deliveries": results["deliveries"],
        "publishers": results["publishers"],
        "convergence": results["convergence"],
        "wan": wan.table(results["wan_messages"], results["wan_copies"]),
        "confirmations": results["confirmations"],
        "selectivity": results["selectivity"],
        "chains": failover_events.chains(case.logged, metadata),
    }
    if metadata.traffic:
        timelines["traffic"] = results["traffic"]
    for name, table in timelines.items():
        write(table, run.table(name))
    figures, reasons = recovery_table.headline(recovery, metadata)
    notes = [] if case.recorded else [NO_RECORDS]
    notes += [] if case.links else [NO_LINK_CAPTURES]
    notes += [] if case.hosts else [NO_HOST_CAPTURES]
    notes += [] if case.decoded or not case.hosts else [_not_decoded(metadata)]
    notes += [] if (case.decoded and not metadata.by_host) or case.taken else [FROM_ACKNOWLEDGEMENT]
    notes += traffic.notes(reports)
    untimed = results["untimed"]
    notes += [] if metadata.window.problem else latency.notes(results["samples"], untimed, metadata)
    notes += [] if metadata.window.problem else convergence.notes(results["convergence"])
    notes += [] if metadata.window.problem else outside_notes(results["outside"], metadata.window)
    notes += strangers.notes(run, metadata)
    machines = read_details(run)
    notes += clock_notes.notes(machines, metadata.zero_ns)
    damaged = _damaged(case) if case.hosts else {}
    unfit = unfit_hosts(case.record, metadata, damaged)
    comparable = case.decoded and case.recorded
    return Findings(
        deliveries=deliveries,
        publishers=results["publishers"],
        confirmations=results["confirmations"],
        selectivity=results["selectivity"],
        measured=results["measured"].to_pylist(),
        latency=latency.headline(results["samples"])
        | latency.phases(results["samples"], metadata)
        | latency.error_bounds(timelines["latency"]),
        recovery=figures,
        wan=wan.headline(timelines["wan"], results["wire"] if case.links else None),
        convergence=convergence.headline(results["convergence"], case.logged, metadata),
        fidelity=links,
        routes=recovery_table.routes(recovery),
        agreement=compare(results["coverage"], results["deliveries"], metadata, unfit)
        if comparable
        else None,
        damaged=damaged,
        notes=(*notes, *reasons),
        clocks=clock_notes.summary(machines),
        unknown_clocks=tuple(clock_notes.problems(machines)),
        traffic=traffic.headline(reports, others, metadata),
    )
