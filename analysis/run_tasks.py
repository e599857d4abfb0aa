"""What has to be done to follow a run's events, cut into tasks that are alike in size."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from analysis.jobs import transfers
from analysis.run_case import Case, counted_clients
from analysis.schemas import TRANSFERS
from analysis.timelines.delivery.confirmations import planned_subscriptions
from analysis.timelines.delivery.content import ContentFiles
from analysis.timelines.links.traversals import LinkTraversal, traversals
from analysis.timelines.recovering import failover_events
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.schemas import EVENTS, MEASURES
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
from analysis.timelines.tasks.results import Task
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory
from node.core.deliveries import RECORD

TABLES = {"events": EVENTS, "transfers": TRANSFERS, "measures": MEASURES}
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


def first_tasks(case: Case, folders: Mapping[str, Path]) -> list[Task]:
    """Everything that does not need the events of all hosts. folders: where the tables that it writes go."""
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


def stream_tasks(case: Case, written: RecordFiles | None) -> list[Task]:
    """The streams, followed through the events of all hosts, or through what these wrote down."""
    metadata = case.metadata
    sources, clients = failover_events.sources(case.logged, metadata), counted_clients(case)
    events = case.run.table("events") if case.decoded else None
    content = ContentFiles.of(case.run, metadata, clients)
    shares = _shared_out(sorted(metadata.owner), STREAM_TASKS_MAX)
    logged = ({stream: sources[stream] for stream in some if stream in sources} for some in shares)
    return [
        FollowStreams(some, events, written, metadata, clients, known, content)
        for some, known in zip(shares, logged, strict=True)
    ]


def _files(run: RunDirectory, hosts: Sequence[str]) -> tuple[Files, ...]:
    return tuple((host, run.host_deliveries(host)) for host in hosts)


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
