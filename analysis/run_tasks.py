"""Tasks that follow a run's events, of about equal size."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from analysis.jobs import transfers
from analysis.run_case import AnalysisCase, counted_clients
from analysis.schemas import TRANSFERS
from analysis.timelines.delivery.confirmations import planned_subscriptions
from analysis.timelines.delivery.content import ContentFiles
from analysis.timelines.links.traversals import LinkTraversal, traversals
from analysis.timelines.recovering import failover_events
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.schemas import EVENTS, MEASURES
from analysis.timelines.tasks.following import FollowStreams
from analysis.timelines.tasks.packets import MessagesToEvents, measure_link
from analysis.timelines.tasks.records import (
    CheckClients,
    Files,
    RecordFiles,
    check_publisher,
    compare_order,
    convert_measures,
    count_matches,
    sort_records,
)
from analysis.timelines.tasks.results import Task
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory
from node.core.deliveries import RECORD

TABLES = {"events": EVENTS, "transfers": TRANSFERS, "measures": MEASURES}
"""Tables that many tasks write, each task one file."""
RECORDS = "records"
"""The nodes' records, ordered by stream; a temporary table for following streams."""
FOLLOWED = ("samples", "untimed", "pairs", "coverage", "convergence", "wan_copies")
"""Results of following streams."""
STREAM_TASKS_MAX = 64
"""Largest number of tasks that follow streams: each reads the whole input once."""
TASK_BYTES = 4 << 20
"""Bytes of records per task; in a worker they take about ten times as much memory."""
PAIRS_TOGETHER = 1 << 24
"""Largest number of (client, event) pairs per task if any event may match any client."""
GROUPS_TOGETHER = 1 << 17
"""Largest number of (client, stream) pairs per task; each takes memory even without events."""


def first_tasks(case: AnalysisCase, folders: Mapping[str, Path]) -> list[Task]:
    """Return all tasks that do not need the events of all hosts. folders: output folder of each table."""
    run, metadata, contract = case.run, case.metadata, case.metadata.declared.contract
    drivers = _files(run, metadata.having(Trait.PUBLISHER))
    written = RecordFiles(folders[RECORDS]) if RECORDS in folders else None

    def records_file(trait: Trait, number: int) -> Path | None:
        return written.file(trait, number) if written else None

    messages = sorted(run.table("messages").glob("*.parquet")) if case.decoded else []
    planned = planned_subscriptions(case.record.plan, metadata)
    content = ContentFiles.from_run(run, metadata, metadata.clients)
    every_client = _files(run, metadata.clients)
    marks = tuple(path for name, _ in drivers if (path := run.host_collection(name)).is_file())
    links: dict[str, list[LinkTraversal]] = {}
    for traversal in traversals(case.record.plan) if case.links else ():
        links.setdefault(traversal.direction[0], []).append(traversal)
    return [
        *(MessagesToEvents(file, folders["events"], metadata) for file in messages),
        *(transfers.tasks(run, metadata.host_at, folders["transfers"]) if case.hosts else ()),
        *(partial(measure_link, run.table("packets"), both, metadata) for both in links.values()),
        *(
            CheckClients(
                clients,
                drivers,
                marks,
                metadata,
                not case.decoded or metadata.by_host,
                ContentFiles.from_run(run, metadata, (name for name, _ in clients)),
                {name: planned.get(name, ()) for name, _ in clients} if planned else {},
                records_file(Trait.SUBSCRIBER, number),
            )
            for number, clients in enumerate(_grouped(every_client, _clients_together(run, metadata)))
        ),
        *(partial(check_publisher, name, path, metadata.clocks) for name, path in drivers),
        *(
            partial(convert_measures, name, path, folders["measures"], metadata.clocks)
            for name in metadata.hosts
            if (path := run.host_measures(name)).is_file()
        ),
        *([partial(compare_order, every_client, metadata)] if contract.order == "total" else ()),
        *([partial(count_matches, content, metadata)] if content else ()),
        *(
            partial(sort_records, files, followed, metadata.clocks)
            for trait in (Trait.PUBLISHER, Trait.SERVER)
            for number, files in enumerate(_grouped(_files(run, metadata.having(trait))))
            if (followed := records_file(trait, number)) is not None
        ),
    ]


def stream_tasks(case: AnalysisCase, written: RecordFiles | None) -> list[Task]:
    """Return the tasks that follow streams through the events of all hosts, or through the nodes' records."""
    metadata = case.metadata
    sources, clients = failover_events.sources(case.logged, metadata), counted_clients(case)
    events = case.run.table("events") if case.decoded else None
    content = ContentFiles.from_run(case.run, metadata, clients)
    shares = _shared_out(sorted(metadata.owner), STREAM_TASKS_MAX)
    logged = ({stream: sources[stream] for stream in some if stream in sources} for some in shares)
    return [
        FollowStreams(some, events, written, metadata, clients, known, content)
        for some, known in zip(shares, logged, strict=True)
    ]


def _files(run: RunDirectory, hosts: Sequence[str]) -> tuple[Files, ...]:
    return tuple((host, run.host_deliveries(host)) for host in hosts)


def _shared_out(streams: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """Split streams into at most `most` contiguous shares of about equal size."""
    ends = np.linspace(0, len(streams), min(most, len(streams)) + 1).astype(int).tolist()
    return [tuple(streams[low:high]) for low, high in pairwise(ends)]


def _clients_together(run: RunDirectory, metadata: RunMetadata) -> int:
    """Return how many clients one task checks.

    If every client is to get every event, the limit is on client and stream pairs. If events are selected by
    content, it is on client and event pairs, delivered or not.
    """
    audience = metadata.declared.contract.audience
    if audience == "all":
        return max(1, GROUPS_TOGETHER // max(1, len(metadata.owner)))
    if audience == "content":
        written = (path for _, path in _files(run, metadata.having(Trait.PUBLISHER)) if path.is_file())
        events = sum(path.stat().st_size for path in written) // RECORD.size
        return max(1, PAIRS_TOGETHER // max(1, events))
    return len(metadata.clients)


def _grouped(files: Sequence[Files], most: int | None = None) -> list[tuple[Files, ...]]:
    """Group files until a group is worth a task, since thousands of clients may write little each.

    most: the largest number of files in a group.
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
    return [tuple(group) for group in found]
