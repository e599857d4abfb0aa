"""Reads what clients record during a run, as batches for the live timelines.

The records have each event that a client publishes or receives, with the time. They are read incrementally,
a few times per second, in a separate thread. As in the analysis after the run, an event is published when it
has reached its server: the time when its publisher sent it, plus the configured delay of its LAN link. If a
publisher only records when the system acknowledged an event, its time is that in the server's own record;
programs have none, and no latency is shown.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from analysis.errors import AnalysisError
from analysis.live.audience import GrowingRecords
from analysis.live.timelines import EventBatch
from analysis.timelines.delivery.delivery_records import DELIVERED_KINDS
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


class LiveRead:
    """Reads the records of one run until `finish`. failure: why it stopped. ended: everything was read."""

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
        self.failure: str | None = None
        self.ended = False
        self._on_ready, self._on_end = on_ready, on_end
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._go, name="reading", daemon=True)
        self._take = take
        self._now_ns = now_ns
        self._metadata = metadata
        self._clients = tuple(metadata.clients)
        self._is_sent = metadata.declared.contract.published != ONLY_ACKNOWLEDGED
        self._publishers = frozenset(metadata.having(Trait.PUBLISHER if self._is_sent else Trait.SERVER))
        writers = dict.fromkeys((*self._publishers, *self._clients))
        self._records = {name: GrowingRecords(name, run.host_deliveries(name)) for name in writers}

    def start(self) -> None:
        """Call `on_ready`, then read until `finish`."""
        self._thread.start()

    def finish(self) -> None:
        """Read the rest, since the run has ended. Returns at once."""
        self._finished.set()

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

    def _go(self) -> None:
        try:
            self._on_ready()
            while not self._finished.wait(PERIOD_S):
                self.read()
            self.read()
        except AnalysisError as error:
            self.failure = str(error)
        except Exception as error:  # noqa: BLE001 - an error here must not affect the run; it is shown in one line
            self.failure = f"{type(error).__name__}: {error}".partition("\n")[0]
        else:
            self.ended = True
            self._on_end()

    def _batches(self, host: Host, records: GrowingRecords) -> list[EventBatch]:
        rows = records.read().rows
        to_server_ns = sum(host.lan_delay_us) * 1000 if self._is_sent else 0
        names = ("kind", "stream", "first_seq", "covered", "count", "time_ns")
        found = []
        for kind, stream, first_seq, covered, count, t_ns in zip(
            *(rows[name].tolist() for name in names), strict=True
        ):
            published = kind == RecordKind.PUBLISHED and host.name in self._publishers
            if published or kind in DELIVERED_KINDS:
                at_ns = t_ns + to_server_ns if published else t_ns
                events = 0 if kind == RecordKind.TOMBSTONE else count
                reach = max(count, covered)
                found.append(EventBatch(published, host.name, stream, first_seq, reach, events, at_ns))
        return found
