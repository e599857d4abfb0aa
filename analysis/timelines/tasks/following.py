"""Tasks that follow streams through all hosts: latency, recovery, and coverage of each client."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from analysis.timelines import agreement, latency, schemas
from analysis.timelines.arrays import ints
from analysis.timelines.coded_texts import read_coded
from analysis.timelines.delivery import deliveries, sparse_intervals
from analysis.timelines.delivery.content import ContentFiles
from analysis.timelines.delivery.delivery_records import by_stream
from analysis.timelines.delivery.sequence_intervals import SequenceIntervals, without_misdated
from analysis.timelines.delivery.sparse_intervals import SparseIntervals
from analysis.timelines.delivery.stream_groups import COLUMNS, intervals, records_pieces, sources
from analysis.timelines.delivery.stream_paths import SourceHistory
from analysis.timelines.links import wan
from analysis.timelines.recovering import convergence, recovery
from analysis.timelines.recovering.host_paths import host_sources
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.tasks.records import RecordFiles
from analysis.timelines.tasks.results import concatenate_results
from experiments.declared import Trait


@dataclass(frozen=True, slots=True)
class FollowStreams:
    """Follows some streams through all hosts' events or, without captures, through the records of
    subscribers, publishers and servers.
    """

    streams: tuple[int, ...]
    events: Path | None
    written: RecordFiles | None
    metadata: RunMetadata
    clients: tuple[str, ...]  # those that count: with complete captures
    logged: Mapping[int, Mapping[str, SourceHistory]]
    """Their sources by region, from the logs, for streams without packets between servers."""
    content: ContentFiles | None

    def run(self) -> dict[str, pa.Table]:
        """Return latency samples, recovery pairs, and what each client received."""
        nothing_written = dict.fromkeys(self.streams, schemas.RECORDS.empty_table())
        published, taken, got = (
            self.written.read(trait, self.streams) if self.written else nothing_written
            for trait in (Trait.PUBLISHER, Trait.SERVER, Trait.SUBSCRIBER)
        )
        metadata = replace(
            self.metadata, owner={stream: self.metadata.owner[stream] for stream in self.streams}
        )
        acknowledged, taken_by_clients = (pa.concat_tables(each.values()) for each in (published, got))
        content = self.content.read(metadata.clocks) if self.content else None
        wanted = (
            deliveries.required_sets(self.clients, acknowledged, taken_by_clients, metadata, content) or {}
        )
        order = {client: number for number, client in enumerate(self.clients)}
        return concatenate_results(
            self._follow(
                stream,
                events,
                (published[stream], taken[stream], got[stream]),
                wanted.get(stream),
                self._concerned(events, got[stream], wanted.get(stream), order),
            )
            for stream, events in self._events().items()
        )

    def _events(self) -> dict[int, pa.Table]:
        if self.events is None:
            return dict.fromkeys(self.streams, schemas.EVENTS.empty_table())
        chosen = pc.field("stream").isin(self.streams) & (pc.field("kind") != "sent")
        return by_stream(read_coded(self.events, COLUMNS, schemas.EVENTS, chosen), self.streams)

    def _follow(
        self,
        stream: int,
        events: pa.Table,
        records: tuple[pa.Table, pa.Table, pa.Table],
        wanted: deliveries.Sets | None,
        clients: Sequence[str],
    ) -> dict[str, pa.Table]:
        seen: Mapping[str, SourceHistory] = {}
        metadata = self.metadata
        if self.events is not None:
            within = events.filter(pa.array(metadata.window.holds(ints(events, "t_ns"))))
            seen = host_sources(within, metadata) if metadata.by_host else sources(within, metadata)
        if not any(source.names for source in seen.values()):  # packets show no sources
            seen = self.logged.get(stream, {})
        pieces, blocks = self._cut(events, records, wanted, clients)
        found = [_client_results(recovery.DeliveryHistory(metadata, stream, block, seen)) for block in blocks]
        samples = latency.samples(stream, pieces, metadata)
        return {
            "samples": latency.merge_similar(samples, metadata),
            "untimed": latency.untimed(stream, pieces, metadata, samples.num_rows),
            **concatenate_results(found),
            **(
                {}
                if self.events is None
                else {
                    "coverage": agreement.coverage(stream, events, records[-1], self.metadata),
                    "wan_copies": wan.copies_over_links(events, self.metadata),
                }
            ),
        }

    def _cut(
        self,
        events: pa.Table,
        records: tuple[pa.Table, pa.Table, pa.Table],
        wanted: deliveries.Sets | None,
        clients: Sequence[str],
    ) -> tuple[SequenceIntervals | SparseIntervals, Iterable[SequenceIntervals]]:
        """Return a stream's pieces at all clients, and as blocks for some clients at a time."""
        window = self.metadata.window
        by_records = self.events is None or self.metadata.by_host
        if wanted is None:
            cut = records_pieces(*records, clients) if by_records else intervals(events, clients)
            pieces = without_misdated(cut, window)
            return pieces, [pieces]
        sparse = (
            sparse_intervals.from_records(*records, clients, wanted)
            if by_records
            else sparse_intervals.from_events(events, clients, wanted)
        )
        sparse = sparse_intervals.without_misdated_pairs(sparse, window)
        return sparse, sparse.blocks()

    def _concerned(
        self, events: pa.Table, got: pa.Table, wanted: deliveries.Sets | None, order: Mapping[str, int]
    ) -> Sequence[str]:
        """Return the clients that a stream concerns, in their order."""
        if self.metadata.declared.contract.audience == "all":
            return self.clients
        there = {*events.column("host").unique().to_pylist(), *got.column("host").unique().to_pylist()}
        there |= {client for runs in wanted or () for client in runs}
        return sorted(there & order.keys(), key=order.__getitem__)


def _client_results(history: recovery.DeliveryHistory) -> dict[str, pa.Table]:
    """Return the results for each client separately."""
    return {"pairs": recovery.pairs(history), "convergence": convergence.flows(history)}
