"""The timelines' work, cut into independent tasks that read and write Parquet with Arrow.

They are cut along what they need: a host's messages become its events, a link's packets show what the link
did, some clients' records are checked at once, a driver's are, and a stream's events (of all hosts) give
latency, recovery and coverage. Without captures a stream is followed from the records alone. Big results are
written by the task, as one file under a temporary name that is renamed; small ones are returned and put
together by table. Rows never pass through Java: with joins and groups in Spark SQL the same steps took 25 s
for 1.2 million messages on 2 cores, this way 2 s.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.capture.clocks.machines import Clocks
from analysis.jobs import work
from analysis.jobs.work import Workers
from analysis.timelines import (
    acts,
    agreement,
    convergence,
    deliveries,
    events,
    fidelity,
    latency,
    publishers,
    recovery,
    schemas,
    throughput,
    total_order,
)
from analysis.timelines.arrays import concatenated, ints, rows
from analysis.timelines.collecting import read_marks
from analysis.timelines.crossings import PACKET_COLUMNS, Crossing, sides
from analysis.timelines.facts import Facts
from analysis.timelines.pieces import dated
from analysis.timelines.records import read_file, read_files
from analysis.timelines.run_window import outside
from analysis.timelines.stream_groups import COLUMNS, pieces, records_pieces, sources, with_wanted
from analysis.timelines.ways import Sources
from experiments.declared import Trait
from experiments.whole_files import replacing

Files = tuple[str, Path]
"""A host and what it wrote down."""
RESULTS = {
    "arrivals": schemas.ARRIVALS,
    "subscriptions": schemas.SUBSCRIPTIONS,
    "fidelity": schemas.FIDELITY,
    "wire": schemas.WIRE,
    "outside": schemas.OUTSIDE,
    "deliveries": schemas.DELIVERIES,
    "disorder": schemas.DISORDER,
    "publishers": schemas.PUBLISHERS,
    "samples": schemas.SAMPLES,
    "pairs": schemas.PAIRS,
    "coverage": schemas.COVERAGE,
    "convergence": schemas.CONVERGENCE,
}
"""What tasks return, by name."""
COMPRESSION = "lz4"

Task = work.Task[dict[str, pa.Table]]
"""Its results are small, with names of `RESULTS`."""


@dataclass(frozen=True, slots=True)
class MessagesToEvents:
    """One file of the table of messages, which holds those of one host, to a file of events."""

    messages: Path
    folder: Path
    facts: Facts

    def run(self) -> dict[str, pa.Table]:
        """Also sums up what arrived, and finds what a proxy asked for."""
        messages = pq.read_table(self.messages, columns=list(events.MESSAGE_COLUMNS))
        if not messages.num_rows:
            return {}
        host = self.facts.hosts[messages.column("host")[0].as_py()]
        found = events.from_messages(messages, host, self.facts)
        write(found, self.folder / f"{host.name}.parquet")
        window, t_ns = self.facts.window, ints(messages, "t_first_ns")
        within = messages.filter(pa.array(window.holds(t_ns)))
        asked = (
            {"subscriptions": acts.subscriptions(within, self.facts)}
            if self.facts.has(host, Trait.SERVER)
            else {}
        )
        return {
            "arrivals": throughput.arrivals(found, self.facts),
            "outside": outside(host.name, "messages", t_ns, window),
            **asked,
        }


@dataclass(frozen=True, slots=True)
class MeasureLink:
    """Both directions of one link, from the captures at its middle."""

    packets: Path
    crossings: tuple[Crossing, ...]
    facts: Facts

    def run(self) -> dict[str, pa.Table]:
        """Delay, loss and rate; bytes per bin."""
        wanted = sorted({name for crossing in self.crossings for name in (crossing.near, crossing.far)})
        chosen = pc.field("capture").isin(wanted)
        packets = pq.read_table(self.packets, columns=list(PACKET_COLUMNS), filters=chosen)
        measured, carried, strange = [], [], []
        for crossing in self.crossings:
            near, far = sides(packets, crossing)
            measured.append(fidelity.measured(crossing.way, near, far, self.facts))
            carried.append(throughput.wire(crossing.way, far, self.facts))
            strange += [
                outside(capture, "packets", ints(seen, "t_ns"), self.facts.window)
                for capture, seen in ((crossing.near, near), (crossing.far, far))
            ]
        return {
            "fidelity": pa.concat_tables(measured),
            "wire": pa.concat_tables(carried),
            "outside": pa.concat_tables(strange),
        }


@dataclass(frozen=True, slots=True)
class CheckClients:
    """What some clients got, against what the drivers know to be published."""

    clients: tuple[Files, ...]
    published: tuple[Files, ...]  # by drivers
    marks: tuple[Path, ...]  # likewise: which events collect, and their keys
    facts: Facts
    count: bool  # whether what arrived is to be counted from the records

    def run(self) -> dict[str, pa.Table]:
        """A row for each client and stream; also sums up what arrived, if asked to."""
        published, got = (
            read_files(files, clocks=self.facts.clocks) for files in (self.published, self.clients)
        )
        names = [name for name, _ in self.clients]
        marks = read_marks(self.marks) if self.facts.marked and self.marks else None
        arrived = {"arrivals": throughput.arrivals_of_records(got, self.facts)} if self.count else {}
        strange = [
            outside(name, "records", ints(rows(got, host=name), "t_ns"), self.facts.window) for name in names
        ]
        return {
            "deliveries": deliveries.check(names, published, got, self.facts, marks),
            "outside": concatenated(strange, schemas.OUTSIDE),
            **arrived,
        }


@dataclass(frozen=True, slots=True)
class CompareOrder:
    """In which order all clients got what they got."""

    clients: tuple[Files, ...]
    facts: Facts

    def run(self) -> dict[str, pa.Table]:
        """What came to one against the order of the others."""
        got = read_files(self.clients, tuple(self.facts.owner), clocks=self.facts.clocks)
        return {"disorder": total_order.disorder(got, self.facts)}


@dataclass(frozen=True, slots=True)
class CheckPublisher:
    """One driver's events, in the order in which it published them?"""

    driver: str
    records: Path
    clocks: Clocks

    def run(self) -> dict[str, pa.Table]:
        """The driver's rows."""
        return {
            "publishers": publishers.check_order(
                self.driver, read_file(self.driver, self.records, self.clocks)
            )
        }


@dataclass(frozen=True, slots=True)
class FollowStreams:
    """Some streams, over all hosts' events."""

    streams: tuple[int, ...]
    events: Path
    written: "Written"
    facts: Facts
    clients: tuple[str, ...]  # that count: those whose captures can tell
    logged: Mapping[int, Mapping[str, Sources]]
    """Their sources by region, from the logs: where no packet between servers was seen."""

    def run(self) -> dict[str, pa.Table]:
        """Latency samples, recovery pairs, and what each client has."""
        chosen = pc.field("stream").isin(self.streams) & (pc.field("kind") != "sent")
        events_of = by_stream(pq.read_table(self.events, columns=list(COLUMNS), filters=chosen), self.streams)
        records = self.written.read(self.streams, self.facts) if self.written.needed(self.facts) else None
        return together(
            self._follow(stream, found, records[stream] if records else None)
            for stream, found in events_of.items()
        )

    def _follow(
        self, stream: int, found: pa.Table, records: tuple[pa.Table, ...] | None
    ) -> dict[str, pa.Table]:
        window = self.facts.window
        cut = pieces(found, self.clients)
        if records is not None:
            published, _, got = records
            cut = with_wanted(cut, deliveries.must_get(self.clients, published, got, self.facts))
        cut = dated(cut, window)
        seen = sources(found.filter(pa.array(window.holds(ints(found, "t_ns")))), self.facts)
        packets_tell = any(source.names for source in seen.values())
        logged = self.logged.get(stream, {})
        history = recovery.History(self.facts, stream, cut, seen if packets_tell else logged)
        return {
            "samples": latency.samples(stream, cut, self.facts),
            "pairs": recovery.pairs(history),
            "convergence": convergence.flows(history),
            "coverage": agreement.coverage(stream, found, self.facts),
        }


@dataclass(frozen=True, slots=True)
class FollowRecords:
    """Some streams, as subscribers, publishers and servers wrote them down: where there are no captures."""

    streams: tuple[int, ...]
    written: "Written"
    facts: Facts
    logged: Mapping[int, Mapping[str, Sources]]

    def run(self) -> dict[str, pa.Table]:
        """Latency samples and recovery pairs."""
        found = self.written.read(self.streams, self.facts)
        return together(self._follow(stream, *found[stream]) for stream in self.streams)

    def _follow(
        self, stream: int, published: pa.Table, taken: pa.Table, got: pa.Table
    ) -> dict[str, pa.Table]:
        names = self.written.names
        cut = records_pieces(published, taken, got, names)
        cut = with_wanted(cut, deliveries.must_get(names, published, got, self.facts))
        cut = dated(cut, self.facts.window)
        history = recovery.History(self.facts, stream, cut, self.logged.get(stream, {}))
        return {
            "samples": latency.samples(stream, cut, self.facts),
            "pairs": recovery.pairs(history),
            "convergence": convergence.flows(history),
        }


@dataclass(frozen=True, slots=True)
class Written:
    """What clients, publishers and servers wrote down."""

    clients: tuple[Files, ...]
    publishers: tuple[Files, ...]
    servers: tuple[Files, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The clients."""
        return tuple(name for name, _ in self.clients)

    @staticmethod
    def needed(facts: Facts) -> bool:
        """Whether packets alone do not say who must get what."""
        contract = facts.declared.contract
        return contract.audience != "all" or contract.since != "beginning" or contract.survives is not None

    def read(self, streams: Sequence[int], facts: Facts) -> dict[int, tuple[pa.Table, pa.Table, pa.Table]]:
        """Of each stream what publishers, servers and clients have; files are read once."""
        tables = [
            by_stream(read_files(files, streams, clocks=facts.clocks), streams)
            for files in (self.publishers, self.servers, self.clients)
        ]
        return {stream: (tables[0][stream], tables[1][stream], tables[2][stream]) for stream in streams}


def by_stream(table: pa.Table, streams: Sequence[int]) -> dict[int, pa.Table]:
    """The rows of each stream, in the order in which they stand."""
    ordered = table.take(pa.array(np.argsort(ints(table, "stream"), kind="stable")))
    wanted = np.array(streams, np.int64)
    low, high = (np.searchsorted(ints(ordered, "stream"), wanted, side=side) for side in ("left", "right"))
    return {
        stream: ordered.slice(first, end - first)
        for stream, first, end in zip(streams, low.tolist(), high.tolist(), strict=True)
    }


def together(found: Iterable[dict[str, pa.Table]]) -> dict[str, pa.Table]:
    """The results of several streams."""
    results = list(found)
    names = dict.fromkeys(name for result in results for name in result)
    return {name: pa.concat_tables([result[name] for result in results]) for name in names}


def carry_out(workers: Workers, tasks: Sequence[Task], doing: str) -> dict[str, pa.Table]:
    """Do all tasks, and put their results together by name; a result that no task gave is empty.

    doing: what this is, for the error. Raises AnalysisError if a task fails.
    """
    returned = workers.carry_out(tasks, doing)
    return {
        name: concatenated([result[name] for result in returned if name in result], schema)
        for name, schema in RESULTS.items()
    }


def nothing() -> dict[str, pa.Table]:
    """All results, empty: where there was nothing to be done."""
    return {name: schema.empty_table() for name, schema in RESULTS.items()}


def write(table: pa.Table, path: Path) -> None:
    """Write one Parquet file so that readers see it whole or not at all."""
    with replacing(path, sync=False) as stream:
        pq.write_table(table, stream, compression=COMPRESSION)
