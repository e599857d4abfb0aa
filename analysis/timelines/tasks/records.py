"""Tasks that read the nodes' records: deliveries, their order, and measurements."""

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
from analysis.timelines.delivery.delivery_records import read_files, read_streams, write_by_stream
from analysis.timelines.delivery.expected import by_topic, followed_spans
from analysis.timelines.delivery.selectivity import selectivity
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.run_window import outside_by_host
from analysis.timelines.tasks.results import write
from experiments.declared import Trait

Files = tuple[str, Path]
"""A host and the file that it wrote."""


@dataclass(frozen=True, slots=True)
class CheckClients:
    """Compares some clients' deliveries with the published events."""

    clients: tuple[Files, ...]
    published: tuple[Files, ...]  # by drivers
    marks: tuple[Path, ...]  # by drivers: which events collect, and their keys
    metadata: RunMetadata
    count: bool  # whether to count arrivals from the records
    content: ContentFiles | None  # events' values, and these clients' subscriptions
    planned: Planned  # their planned subscriptions
    followed: Path | None  # where to write the records sorted by stream

    def __call__(self) -> dict[str, pa.Table]:
        """Return a row for each client and stream, and sums of arrivals if requested."""
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
            "deliveries": deliveries.delivery_table(
                names, published, got, self.metadata, marks, content=content
            ),
            "confirmations": check_confirmations(self.planned, got, self.metadata, content),
            "outside": outside_by_host("records", got, self.metadata.window),
            **({"followed": followed_spans(got, self.metadata)} if by_topic(self.metadata) else {}),
            **arrived,
        }


def compare_order(clients: Sequence[Files], metadata: RunMetadata) -> dict[str, pa.Table]:
    """Return arrivals at clients that contradict the order of other clients."""
    got = read_files(clients, tuple(metadata.owner), clocks=metadata.clocks)
    return {"disorder": total_order.disorder(got, metadata)}


def count_matches(content: ContentFiles, metadata: RunMetadata) -> dict[str, pa.Table]:
    """Return how many subscriptions, of all clients, each event matches: a row for each number of them."""
    return {"selectivity": selectivity(content.read(metadata.clocks), metadata)}


def convert_measures(host: str, path: Path, folder: Path, clocks: MachineClocks) -> dict[str, pa.Table]:
    """Convert one host's own measurements to a file of values; returns their figures."""
    values = measures.table(host, measures.read_measures(host, path, clocks))
    write(values, folder / f"{host}.parquet")
    return {"measured": measures.figures(values)}


def check_publisher(driver: str, path: Path, clocks: MachineClocks) -> dict[str, pa.Table]:
    """Return a publisher's rows of `schemas.PUBLISHERS`: whether its events are in their order."""
    return {"publishers": verification.check_order(driver, read_files([(driver, path)], clocks=clocks))}


def sort_records(files: Sequence[Files], followed: Path, clocks: MachineClocks) -> dict[str, pa.Table]:
    """Write the records of some publishers or servers sorted by stream; returns nothing."""
    write_by_stream(read_files(files, clocks=clocks), followed)
    return {}


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """The records of clients, publishers and servers by stream: files of `write_by_stream`."""

    folder: Path

    def file(self, trait: Trait, number: int) -> Path:
        """Return the path of some hosts' records; files are read in the order of their numbers."""
        return self.folder / f"{trait}-{number:06d}.parquet"

    def read(self, trait: Trait, streams: Sequence[int]) -> dict[int, pa.Table]:
        """Return each stream's records from hosts with a trait."""
        return read_streams(sorted(self.folder.glob(f"{trait}-*.parquet")), streams)
