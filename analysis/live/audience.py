"""Determines which client must get which of the recent events of a running run.

This follows from the contract, as after the run (`analysis.timelines.delivery.expected`), and from the
records of publishers and subscribers, which are read incrementally. A subscription may still be pending
when other clients get the first events that match it, so an event's audience is final only after the
contract's settle time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.timelines import schemas
from analysis.timelines.delivery import deliveries
from analysis.timelines.delivery.content import ContentFiles, ContentRecords, content_of
from analysis.timelines.delivery.delivery_records import (
    SUBSCRIPTIONS,
    HostRecords,
    as_table,
    read_rows,
    sessions_of,
)
from analysis.timelines.delivery.expected import all_events_due_to_all
from analysis.timelines.delivery.stream_pieces import Sets
from analysis.timelines.measures import Rows, read_measures
from analysis.timelines.run_metadata import RunMetadata
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory
from node.core.content.content_measures import EVENT, INTEREST
from node.core.deliveries import RecordKind
from node.core.measures import BlockReader

_OF_PUBLISHERS = (RecordKind.PUBLISHED, RecordKind.ACKNOWLEDGED)


class GrowingRecords:
    """The delivery records of one host, read incrementally while they are written."""

    def __init__(self, host: str, path: Path) -> None:
        self._host, self._path = host, path
        self._records, self._session = 0, -1

    def read(self) -> HostRecords:
        """Return the records written since the last call. Raises AnalysisError for a file of another kind."""
        rows = read_rows(self._path, self._records)
        session = sessions_of(rows, self._session)
        position = self._records + np.arange(len(rows))
        self._records += len(rows)
        self._session = int(session[-1]) if len(rows) else self._session
        return HostRecords(self._host, rows, session, position)


class RequiredDeliveries:
    """The required deliveries of one run, from its growing records."""

    def __init__(self, run: RunDirectory, metadata: RunMetadata) -> None:
        contract = metadata.declared.contract
        self.settle_ns = 0 if all_events_due_to_all(metadata) else contract.settle_us * 1000
        """The time after an event's publication until its audience is final."""
        writers = (
            () if all_events_due_to_all(metadata) else metadata.having(Trait.PUBLISHER, Trait.SUBSCRIBER)
        )
        self._records = [GrowingRecords(name, run.host_deliveries(name)) for name in writers]
        self._published = self._asked = schemas.RECORDS.empty_table()
        files = ContentFiles.from_run(run, metadata, metadata.clients)
        self._content = None if files is None else _GrowingContent(files)

    def read(self, from_ns: int) -> None:
        """Read the records written since the last call; discard publications long before `from_ns`.

        Raises AnalysisError for files of another kind.
        """
        from_ns -= self.settle_ns  # publishers record the time of the acknowledgement
        new = as_table([each.read() for each in self._records])
        kind = new.column("kind")
        asked = new.filter(pc.is_in(kind, value_set=pa.array(SUBSCRIPTIONS, pa.int32())))
        published = new.filter(pc.is_in(kind, value_set=pa.array(_OF_PUBLISHERS, pa.int32())))
        self._asked = pa.concat_tables([self._asked, asked])
        whole = pa.concat_tables([self._published, published])
        self._published = whole.filter(pc.greater_equal(whole.column("t_ns"), from_ns)).combine_chunks()
        if self._content is not None:
            self._content.read(from_ns)

    def must_get(self, streams: Sequence[int], metadata: RunMetadata) -> Mapping[int, Sets] | None:
        """Return the recent events of these streams that each client must get; None: all of them."""
        if all_events_due_to_all(metadata):
            return None
        return deliveries.required_sets(
            metadata.clients,
            self._published,
            self._asked,
            replace(metadata, owner={stream: metadata.owner[stream] for stream in streams}),
            None if self._content is None else self._content.content(),
        )


class _GrowingContent:
    """The attributes of events and the interests of clients, read incrementally."""

    def __init__(self, files: ContentFiles) -> None:
        self._files = files
        self._readers = {host: BlockReader() for host, _ in (*files.publishers, *files.clients)}
        self._events: list[Rows] = []
        self._interests: dict[str, list[Rows]] = {host: [] for host, _ in files.clients}

    def read(self, from_ns: int) -> None:
        for host, path in dict((*self._files.publishers, *self._files.clients)).items():
            found = read_measures(host, path, reader=self._readers[host])
            self._events += found.get(EVENT, ())
            if host in self._interests:
                self._interests[host] += found.get(INTEREST, ())
        self._events = [block for block in self._events if block[1][-1] >= from_ns]

    def content(self) -> ContentRecords:
        return content_of(self._files.domains, self._events, self._interests.items())
