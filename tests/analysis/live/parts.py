"""Captures cut into parts as tcpdump would, for tests of what reads them."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadMaxBytes

from analysis.capture.pcap.files.growing import GrowingCaptures
from analysis.capture.pcap.files.part import Lenience
from analysis.capture.pcap.files.source import PcapStreamReader
from analysis.capture.pcap.segments import segment_rows
from analysis.live.decoder import ROWS
from analysis.live.query import PARTS
from analysis.schemas import spark_schema
from experiments.records import capture_parts
from tests.analysis.capture.pcap.captures import Record, write_pcap

FIRST = 1_700_000_000


def write_parts(capture: Path, records: Sequence[Record], cuts: Iterable[int] = ()) -> Path:
    """Write records as parts of a capture, cut before these records; the last part is still open."""
    folder = capture_parts.folder_of(capture)
    folder.mkdir(parents=True)
    bounds = [0, *sorted(cuts), len(records)]
    for number, (first, following) in enumerate(pairwise(bounds)):
        write_pcap(folder / f"{FIRST + number}.pcap", records[first:following])
    return folder


def rows_in_turns(captures: Path, port: int) -> Iterator[pa.Table]:
    """Yield the rows that the live view's query gets from a folder of complete captures, part by part."""
    ended = captures / "ended"
    ended.touch()
    growing = GrowingCaptures(str(captures / PARTS), ended, Lenience(missing=True, corrupt=True))
    reader = PcapStreamReader(growing, spark_schema(ROWS), pick=partial(segment_rows, port=port))
    start: dict[str, Any] = {}
    while (end := reader.latestOffset(start, ReadMaxBytes(1))) != start:
        batches = [batch for each in reader.partitions(start, end) for batch in reader.read(each)]
        yield pa.Table.from_batches(batches, ROWS)
        start = end
