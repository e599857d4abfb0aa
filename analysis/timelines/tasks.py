"""The timelines' work, cut into independent tasks that read and write Parquet with Arrow.

They are cut along what they need: a host's messages become its events, a link's packets show what the link
did, some clients' records are checked at once, a driver's are, and a stream's events (of all hosts) give
latency, recovery and coverage. Without captures a stream is followed from the records alone. Big results are
written by the task, as one file under a temporary name that is renamed; small ones are returned and put
together by table. Rows never pass through Java: with joins and groups in Spark SQL the same steps took 25 s
for 1.2 million messages on 2 cores, this way 2 s.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.capture.clocks.machine_clocks import MachineClocks
from analysis.jobs import work
from analysis.jobs.work import Workers
from analysis.schemas import MESSAGES
from analysis.timelines import (
    agreement,
    convergence,
    deliveries,
    events,
    failover_events,
    fidelity,
    latency,
    measures,
    recovery,
    schemas,
    sparse_intervals,
    throughput,
    total_order,
    traffic,
    verification,
    wan,
)
from analysis.timelines.arrays import Ints, concatenated, ints, read_coded
from analysis.timelines.collecting import read_marks
from analysis.timelines.confirmations import Planned, check_confirmations
from analysis.timelines.content import ContentFiles
from analysis.timelines.delivery_records import (
    by_stream,
    read_file,
    read_files,
    read_streams,
    write_by_stream,
)
from analysis.timelines.expected import by_topic, followed
from analysis.timelines.host_paths import host_sources
from analysis.timelines.run_metadata import Host, RunMetadata
from analysis.timelines.run_window import outside, outside_by_host
from analysis.timelines.selectivity import selectivity
from analysis.timelines.sequence_intervals import SequenceIntervals, dated
from analysis.timelines.sparse_intervals import SparseIntervals
from analysis.timelines.stream_groups import COLUMNS, intervals, records_pieces, sources
from analysis.timelines.stream_paths import Sources
from analysis.timelines.traversals import PACKET_COLUMNS, LinkTraversal, sides
from experiments.declared import Trait
from experiments.whole_files import replacing

Files = tuple[str, Path]
"""A host and what it wrote down."""
RESULTS = {
    "arrivals": schemas.ARRIVALS,
    "followed": schemas.FOLLOWED,
    "subscriptions": schemas.SUBSCRIPTIONS,
    "fidelity": schemas.FIDELITY,
    "wire": schemas.WIRE,
    "traffic": schemas.TRAFFIC,
    "wan_messages": schemas.WAN_MESSAGES,
    "wan_copies": schemas.WAN_COPIES,
    "outside": schemas.OUTSIDE,
    "deliveries": schemas.DELIVERIES,
    "confirmations": schemas.CONFIRMATIONS,
    "disorder": schemas.DISORDER,
    "selectivity": schemas.SELECTIVITY,
    "measured": schemas.MEASURED,
    "publishers": schemas.PUBLISHERS,
    "samples": schemas.SAMPLES,
    "untimed": schemas.UNTIMED,
    "pairs": schemas.PAIRS,
    "coverage": schemas.COVERAGE,
    "convergence": schemas.CONVERGENCE,
}
"""What tasks return, by name."""
COMPRESSION = "lz4"
ROWS_TOGETHER = 1 << 20
"""In a row group."""

Task = work.Task[dict[str, pa.Table]]
"""Its results are small, with names of `RESULTS`."""


@dataclass(frozen=True, slots=True)
class MessagesToEvents:
    """Turns one host's file of the table of messages into a file of events."""

    messages: Path
    folder: Path
    metadata: RunMetadata

    def run(self) -> dict[str, pa.Table]:
        """Also sums up what arrived, and finds what a proxy asked for."""
        parts = self._parts()
        if not parts:
            return {}
        host = self.metadata.hosts[self._read(parts[0][:1], ["host"]).column("host")[0].as_py()]
        seen: list[dict[str, pa.Table]] = []
        t_ns: list[Ints] = []

        def read() -> Iterator[pa.Table]:
            for part in parts:
                messages = self._read(part, events.MESSAGE_COLUMNS)
                t_ns.append(ints(messages, "t_first_ns"))
                seen.append(self._of_part(messages, t_ns[-1], host))
                yield messages

        found = events.from_messages(read(), host, self.metadata)
        write(found, self.folder / f"{host.name}.parquet", schemas.EVENTS)
        return {
            **({} if self.metadata.by_host else {"arrivals": throughput.arrivals(found, self.metadata)}),
            "outside": outside(host.name, "messages", np.concatenate(t_ns), self.metadata.window),
            **together(seen),
        }

    def _parts(self) -> list[list[int]]:
        """The file's row groups, in parts that can be understood by themselves: those of a host that passes
        messages on for others are one.
        """
        written = pq.read_metadata(self.messages)
        groups = [number for number in range(written.num_row_groups) if written.row_group(number).num_rows]
        within = written.schema.names.index("within")
        passes_on = any(
            (told := written.row_group(number).column(within).statistics) is None or told.num_values
            for number in groups
        )
        return [groups] if passes_on and groups else [[number] for number in groups]

    def _read(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        texts = [name for name in columns if MESSAGES.field(name).type == pa.string()]
        with pq.ParquetFile(self.messages, read_dictionary=texts) as file:
            return file.read_row_groups(groups, columns=list(columns))

    def _of_part(self, messages: pa.Table, t_ns: Ints, host: Host) -> dict[str, pa.Table]:
        within = messages.filter(pa.array(self.metadata.window.holds(t_ns)))
        found = {"wan_messages": wan.messages_over_links(within, host, self.metadata)}
        if self.metadata.has(host, Trait.SERVER):
            found["subscriptions"] = failover_events.subscriptions(within, self.metadata)
        return found


@dataclass(frozen=True, slots=True)
class MeasureLink:
    """Measures both directions of one link, from the captures on both sides of its emulator."""

    packets: Path
    traversals: tuple[LinkTraversal, ...]
    metadata: RunMetadata

    def run(self) -> dict[str, pa.Table]:
        """Both directions' delay, loss and rate, of all packets; and their bytes per bin, the system's and
        other people's.
        """
        wanted = sorted({name for traversal in self.traversals for name in (traversal.near, traversal.far)})
        chosen = pc.field("capture").isin(wanted)
        packets = pq.read_table(self.packets, columns=list(PACKET_COLUMNS), filters=chosen)
        measured, carried, others, strange = [], [], [], []
        for traversal in self.traversals:
            near, far = sides(packets, traversal)
            measured.append(fidelity.measured(traversal.direction, near, far, self.metadata))
            system = traffic.of_system(far, self.metadata)
            carried.append(throughput.wire(traversal.direction, system, self.metadata))
            others.append(traffic.carried(traversal.direction, far, self.metadata))
            strange += [
                outside(capture, "packets", ints(seen, "t_ns"), self.metadata.window)
                for capture, seen in ((traversal.near, near), (traversal.far, far))
            ]
        return {
            "fidelity": pa.concat_tables(measured),
            "wire": pa.concat_tables(carried),
            "traffic": pa.concat_tables(others),
            "outside": pa.concat_tables(strange),
        }


@dataclass(frozen=True, slots=True)
class CheckClients:
    """Compares what some clients received with what is known to be published."""

    clients: tuple[Files, ...]
    published: tuple[Files, ...]  # by drivers
    marks: tuple[Path, ...]  # likewise: which events collect, and their keys
    metadata: RunMetadata
    count: bool  # whether what arrived is to be counted from the records
    content: ContentFiles | None  # likewise what these clients asked for
    planned: Planned  # what they are to ask for
    followed: Path | None  # where the records are to stand in order of stream, for who follows streams

    def run(self) -> dict[str, pa.Table]:
        """A row for each client and stream; also sums up what arrived, if asked to."""
        published, got = (
            read_files(files, clocks=self.metadata.clocks) for files in (self.published, self.clients)
        )
        if self.followed is not None:
            write_by_stream(got, self.followed)
        names = [name for name, _ in self.clients]
        content = self.content.read(self.metadata.clocks) if self.content else None
        marks = read_marks(self.marks) if self.metadata.marked and self.marks else None
        arrived = {"arrivals": throughput.arrivals_of_records(got, self.metadata)} if self.count else {}
        return {
            "deliveries": deliveries.check(names, published, got, self.metadata, marks, content=content),
            "confirmations": check_confirmations(self.planned, got, self.metadata, content),
            "outside": outside_by_host("records", got, self.metadata.window),
            **({"followed": followed(got, self.metadata)} if by_topic(self.metadata) else {}),
            **arrived,
        }


@dataclass(frozen=True, slots=True)
class CompareOrder:
    """Compares the order of events between all clients."""

    clients: tuple[Files, ...]
    metadata: RunMetadata

    def run(self) -> dict[str, pa.Table]:
        """What came to one against the order of the others."""
        got = read_files(self.clients, tuple(self.metadata.owner), clocks=self.metadata.clocks)
        return {"disorder": total_order.disorder(got, self.metadata)}


@dataclass(frozen=True, slots=True)
class CountMatches:
    """Counts how many subscriptions, of all clients, each event matches."""

    content: ContentFiles
    metadata: RunMetadata

    def run(self) -> dict[str, pa.Table]:
        """A row for each number of them."""
        return {"selectivity": selectivity(self.content.read(self.metadata.clocks), self.metadata)}


@dataclass(frozen=True, slots=True)
class ReadMeasures:
    """Reads what one host's process measured itself, into a file of values."""

    host: str
    measures: Path
    folder: Path
    clocks: MachineClocks

    def run(self) -> dict[str, pa.Table]:
        """Write the values of one host; returns their figures."""
        values = measures.table(self.host, measures.read_measures(self.host, self.measures, self.clocks))
        write(values, self.folder / f"{self.host}.parquet")
        return {"measured": measures.figures(values)}


@dataclass(frozen=True, slots=True)
class CheckPublisher:
    """Checks that one publisher's events have the order in which it published them."""

    driver: str
    records: Path
    clocks: MachineClocks

    def run(self) -> dict[str, pa.Table]:
        """One publisher's rows of `schemas.PUBLISHERS`."""
        return {
            "publishers": verification.check_order(
                self.driver, read_file(self.driver, self.records, self.clocks)
            )
        }


@dataclass(frozen=True, slots=True)
class SortRecords:
    """Sorts the records of some publishers or servers by stream."""

    files: tuple[Files, ...]
    followed: Path
    clocks: MachineClocks

    def run(self) -> dict[str, pa.Table]:
        """Write the records of some hosts in order of stream; returns nothing."""
        write_by_stream(read_files(self.files, clocks=self.clocks), self.followed)
        return {}


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """The records of clients, publishers and servers by stream: files of `write_by_stream`."""

    folder: Path

    def file(self, trait: Trait, number: int) -> Path:
        """Where some hosts' records stand; files are read in the order of their numbers."""
        return self.folder / f"{trait}-{number:06d}.parquet"

    def read(self, trait: Trait, streams: Sequence[int]) -> dict[int, pa.Table]:
        """Each stream's records of hosts with a trait."""
        return read_streams(sorted(self.folder.glob(f"{trait}-*.parquet")), streams)


@dataclass(frozen=True, slots=True)
class FollowStreams:
    """Follows some streams: through all hosts' events, or, where there are no captures, through the records
    of subscribers, publishers and servers.
    """

    streams: tuple[int, ...]
    events: Path | None
    written: RecordFiles | None
    metadata: RunMetadata
    clients: tuple[str, ...]  # that count: those whose captures can tell
    logged: Mapping[int, Mapping[str, Sources]]
    """Their sources by region, from the logs: where no packet between servers was seen."""
    content: ContentFiles | None

    def run(self) -> dict[str, pa.Table]:
        """Latency samples, recovery pairs, and what each client has."""
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
        wanted = deliveries.must_get(self.clients, acknowledged, taken_by_clients, metadata, content) or {}
        order = {client: number for number, client in enumerate(self.clients)}
        return together(
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
        seen: Mapping[str, Sources] = {}
        metadata = self.metadata
        if self.events is not None:
            within = events.filter(pa.array(metadata.window.holds(ints(events, "t_ns"))))
            seen = host_sources(within, metadata) if metadata.by_host else sources(within, metadata)
        if not any(source.names for source in seen.values()):  # packets do not tell
            seen = self.logged.get(stream, {})
        whole, blocks = self._cut(events, records, wanted, clients)
        found = [_of_each_client(recovery.History(metadata, stream, block, seen)) for block in blocks]
        samples = latency.samples(stream, whole, metadata)
        return {
            "samples": latency.gathered(samples, metadata),
            "untimed": latency.untimed(stream, whole, metadata, samples.num_rows),
            **together(found),
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
        """A stream's pieces at all clients, and the same for some clients at a time."""
        window = self.metadata.window
        by_records = self.events is None or self.metadata.by_host
        if wanted is None:
            cut = records_pieces(*records, clients) if by_records else intervals(events, clients)
            whole = dated(cut, window)
            return whole, [whole]
        sparse = (
            sparse_intervals.from_records(*records, clients, wanted)
            if by_records
            else sparse_intervals.from_events(events, clients, wanted)
        )
        sparse = sparse_intervals.dated(sparse, window)
        return sparse, sparse.blocks()

    def _concerned(
        self, events: pa.Table, got: pa.Table, wanted: deliveries.Sets | None, order: Mapping[str, int]
    ) -> Sequence[str]:
        """The clients that have to do with a stream, in their order."""
        if self.metadata.declared.contract.audience == "all":
            return self.clients
        there = {*events.column("host").unique().to_pylist(), *got.column("host").unique().to_pylist()}
        there |= {client for runs in wanted or () for client in runs}
        return sorted(there & order.keys(), key=order.__getitem__)


def _of_each_client(history: recovery.History) -> dict[str, pa.Table]:
    """What is found out of each client by itself."""
    return {"pairs": recovery.pairs(history), "convergence": convergence.flows(history)}


def together(found: Iterable[dict[str, pa.Table]]) -> dict[str, pa.Table]:
    """The results of several streams, put together by table."""
    results = list(found)
    names = dict.fromkeys(name for result in results for name in result)
    return {name: pa.concat_tables([result[name] for result in results]).combine_chunks() for name in names}


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


def write(table: pa.Table, path: Path, schema: pa.Schema | None = None) -> None:
    """Write one Parquet file so that readers see it whole or not at all. schema: what its columns are to be
    there; None: what they are here.
    """
    with (
        replacing(path, sync=False) as stream,
        pq.ParquetWriter(stream, schema or table.schema, compression=COMPRESSION) as writer,
    ):
        for begin in range(0, max(1, table.num_rows), ROWS_TOGETHER):
            some = table.slice(begin, ROWS_TOGETHER)
            writer.write_table(some if schema is None else some.cast(schema))
