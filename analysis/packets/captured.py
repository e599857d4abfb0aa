"""The captures of a run and the packets in them, by time: what takes bytes from captures reads through this.

A capture that cannot be used is left out, as the analysis does; its table of captures says why.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from analysis.extraction import listed_captures, load_indices
from analysis.pcap.batches import TimeRange, read_span, spans_of
from analysis.pcap.index import CaptureIndex
from analysis.schemas import PACKETS
from experiments.rundir import RunDirectory


@dataclass(frozen=True, slots=True)
class Captured:
    """One capture: of a host, or of one side of a link's middle."""

    name: str
    path: Path
    host: str | None
    link: str | None
    index: CaptureIndex

    def packets(self, times: TimeRange, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Its packets of these times with some columns of PACKETS, in the order of capture."""
        schema = pa.schema([PACKETS.field(name) for name in columns])
        for span in spans_of(self.path, self.index, times):
            yield from read_span(span, schema, times)


def captures_of(run: RunDirectory) -> list[Captured]:
    """The captures of a run that can be read, in the order in which the run lists them."""
    indices, _ = load_indices(run)
    listed = {run.capture(Path(each["file"]).name): each for each in listed_captures(run)}
    return [
        Captured(path.stem, path, each.get("host"), each.get("link"), indices[path])
        for path, each in listed.items()
        if path in indices
    ]
