"""Reads the delivery records of programs' clients during a run, as batches for the live timelines.

The records have each event that a client publishes or receives, with the time, even if packets show none of
it (`seen: never`). They are read incrementally, a few times per second; captures are not cut into parts, and
Spark is not needed. As in the analysis after the run, an event is published when it has reached its server:
the time when its publisher sent it, plus the configured delay of its LAN link. If a record only has the time
when the system acknowledged an event, no latency can be computed, and none is shown.
"""

import time
from collections.abc import Callable, Mapping, Sequence

from analysis.live.audience import GrowingRecords
from analysis.live.decoder import EventBatch
from analysis.live.reading import LiveReading
from analysis.timelines.run_metadata import Host, RunMetadata
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory
from node.core.deliveries import RecordKind

PERIOD_S = 0.5
WRITTEN_NS = 100_000_000
"""A client's records older than this are in its file."""
ONLY_ACKNOWLEDGED = "acknowledged"
"""A value of `Contract.published`: publishers record an event when the system acknowledges it."""

Take = Callable[[Sequence[EventBatch], Mapping[str, int]], None]
"""Receives batches, and the time up to which each client was read."""


class RecordedRead(LiveReading):
    """Reads the records of one run until `finish`."""

    def __init__(
        self,
        run: RunDirectory,
        metadata: RunMetadata,
        take: Take,
        *,
        on_ready: Callable[[], None],
        on_end: Callable[[], None],
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        super().__init__(on_ready, on_end)
        self._take = take
        self._now_ns = now_ns
        self._metadata = metadata
        self._clients = tuple(metadata.clients)
        writers = dict.fromkeys((*metadata.having(Trait.PUBLISHER), *self._clients))
        self._records = {name: GrowingRecords(name, run.host_deliveries(name)) for name in writers}
        self._shows_latency = metadata.declared.contract.published != ONLY_ACKNOWLEDGED

    def wait(self) -> None:
        """Wait until the rest is read after `finish`, or reading failed."""
        self._thread.join()

    def read(self) -> None:
        """Pass on the records written since the last call. Raises AnalysisError."""
        until_ns = self._now_ns() - WRITTEN_NS
        batches = [
            batch
            for name, records in self._records.items()
            for batch in self._batches(self._metadata.hosts[name], records)
        ]
        self._take(batches, dict.fromkeys(self._clients, until_ns))

    def _run(self) -> None:
        self._on_ready()
        while not self._captured.wait(PERIOD_S):
            self.read()
        self.read()
        self.ended = True
        self._on_end()

    def _batches(self, host: Host, records: GrowingRecords) -> list[EventBatch]:
        rows = records.read().rows
        to_server_ns = sum(host.lan_delay_us) * 1000
        names = ("kind", "stream", "first_seq", "covered", "count", "time_ns")
        found = []
        for kind, stream, first_seq, covered, count, t_ns in zip(
            *(rows[name].tolist() for name in names), strict=True
        ):
            published = kind == RecordKind.PUBLISHED and self._shows_latency
            if published or kind == RecordKind.DELIVERED:
                at_ns = t_ns + to_server_ns if published else t_ns
                found.append(EventBatch(published, host.name, stream, first_seq, covered, count, at_ns))
        return found
