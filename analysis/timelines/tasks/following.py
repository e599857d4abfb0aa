"""Tasks that follow streams through all hosts: latency, recovery, and coverage of each client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import ints
from analysis.timelines import agreement, latency, schemas
from analysis.timelines.coded_texts import read_coded
from analysis.timelines.delivery import deliveries, stream_pieces
from analysis.timelines.delivery.content import ContentFiles
from analysis.timelines.delivery.delivery_records import by_stream
from analysis.timelines.delivery.stream_paths import SourceHistory, sources
from analysis.timelines.delivery.stream_pieces import Sets
from analysis.timelines.links import wan
from analysis.timelines.recovering import convergence, recovery
from analysis.timelines.recovering.delivery_history import DeliveryHistory
from analysis.timelines.recovering.host_paths import host_sources
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.tasks.records import RecordFiles
from analysis.timelines.tasks.results import concatenate_results
from experiments.declared import Trait

COLUMNS = ("stream", "host", "role", "kind", "peer", "via", "first_seq", "count", "t_ns")
"""Columns of `schemas.EVENTS` that are needed here."""


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

    def __call__(self) -> dict[str, pa.Table]:
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
        wanted: Sets | None,
        clients: Sequence[str],
    ) -> dict[str, pa.Table]:
        seen: Mapping[str, SourceHistory] = {}
        metadata = self.metadata
        if self.events is not None:
            within = events.filter(pa.array(metadata.window.holds(ints(events, "t_ns"))))
            seen = host_sources(within, metadata) if metadata.by_host else sources(within, metadata)
        if not any(source.names for source in seen.values()):  # packets show no sources
            seen = self.logged.get(stream, {})
        if self.events is None or metadata.by_host:
            cut = stream_pieces.from_records(*records, clients, wanted)
        else:
            cut = stream_pieces.from_events(events, clients, wanted)
        pieces = stream_pieces.without_misdated(cut, metadata.window)
        histories = [DeliveryHistory(metadata, stream, block, seen) for block in pieces.blocks()]
        samples = latency.samples(stream, pieces, metadata)
        return {
            "samples": latency.merge_similar(samples, metadata),
            "untimed": latency.untimed(stream, pieces, metadata, samples.num_rows),
            "pairs": pa.concat_tables(map(recovery.pairs, histories)),
            "convergence": pa.concat_tables(map(convergence.flows, histories)),
            **(
                {}
                if self.events is None
                else {
                    "coverage": agreement.coverage(stream, events, records[-1], self.metadata),
                    "wan_copies": wan.copies_over_links(events, self.metadata),
                }
            ),
        }

    def _concerned(
        self, events: pa.Table, got: pa.Table, wanted: Sets | None, order: Mapping[str, int]
    ) -> Sequence[str]:
        """Return the clients that a stream concerns, in their order."""
        if self.metadata.declared.contract.audience == "all":
            return self.clients
        there = {*events.column("host").unique().to_pylist(), *got.column("host").unique().to_pylist()}
        there |= {client for runs in wanted or () for client in runs}
        return sorted(there & order.keys(), key=order.__getitem__)
