"""Tasks that read what nodes wrote down: who got what, in which order, by which measures."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from analysis.capture.clocks.machine_clocks import MachineClocks
from analysis.timelines import measures, throughput, verification
from analysis.timelines.delivery import deliveries, total_order
from analysis.timelines.delivery.collecting import read_marks
from analysis.timelines.delivery.confirmations import Planned, check_confirmations
from analysis.timelines.delivery.content import ContentFiles
from analysis.timelines.delivery.delivery_records import read_file, read_files, read_streams, write_by_stream
from analysis.timelines.delivery.expected import by_topic, followed
from analysis.timelines.delivery.selectivity import selectivity
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.run_window import outside_by_host
from analysis.timelines.tasks.results import write
from experiments.declared import Trait

Files = tuple[str, Path]
"""A host and what it wrote down."""


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
