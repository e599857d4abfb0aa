"""Spark's view of captures that are being written: the streaming source `capture-parts`.

An offset says, for each folder of parts, which part was read last; a part is there to be read once the next
one was begun (`experiments.capture_parts`), and the last one once a file says that nothing follows. What is
read at once is bounded. The tasks read the packets' fields; rows are those of `SEGMENTS`, in the order of
capture within each folder, which one task reads as a whole. (PySpark's "simple" stream reader keeps every
batch that it ever read; this one keeps nothing.)

A row is a TCP segment as tasks hand it on: numbers and places, no payload.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from analysis.capture.pcap.fields import DIRECTION, Columns
from analysis.capture.pcap.index import build_index
from analysis.capture.pcap.record_batches import TimeRange, read_columns, spans_of
from analysis.capture.pcap.streams import pick_segments
from analysis.errors import CaptureError
from analysis.schemas import spark_schema
from experiments import capture_parts

FORMAT = "capture-parts"
BATCH_BYTES_MAX = 128 << 20
NONE_READ = -1

Offsets = Mapping[str, int]
"""By a folder's name, the number of the last part that was read."""
_KEY_TYPES = {"sport": pa.int32(), "dport": pa.int32()}
SEGMENTS = pa.schema(
    [
        ("folder", pa.string()),  # of the parts of one capture
        ("part", pa.int64()),
        ("t_ns", pa.int64()),
        *((name, _KEY_TYPES.get(name, pa.int64())) for name in DIRECTION),
        ("seq", pa.int64()),
        ("flags", pa.int32()),
        ("at", pa.int64()),  # where the payload stands in the part
        ("length", pa.int64()),  # payload bytes on the wire
        ("captured", pa.int64()),  # of which the part has this many
    ]
)


class PartsPartition(InputPartition):
    """What one task reads: parts of any folders, each folder's in order."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        super().__init__(parts)
        self.parts = parts


class PartsSource(DataSource):
    """Options: `path`, the folder of captures; `port`, where the system listens; `tasks`, how many at most;
    `ended`, a file that is there once nothing is written any more.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return spark_schema(SEGMENTS)

    def streamReader(self, schema: StructType) -> "PartsReader":  # noqa: N802  (Spark's name)
        options = self.options
        return PartsReader(
            Path(options["path"]), int(options["port"]), int(options["tasks"]), Path(options["ended"])
        )


class PartsReader(DataSourceStreamReader):
    """Plans which parts a batch takes in one process, and reads them in others."""

    def __init__(self, captures: Path, port: int, tasks: int, ended: Path) -> None:
        self._captures = captures
        self._port = port
        self._tasks = tasks
        self._ended = ended

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
        return latest(self._captures, start, ended=self._ended.exists())

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        waiting = [
            [str(part) for part in between(folder, start, end)]
            for folder in capture_parts.folders(self._captures)
        ]
        hands = [waiting[number :: self._tasks] for number in range(self._tasks)]
        return [PartsPartition(tuple(chain.from_iterable(hand))) for hand in hands if any(hand)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for part in cast("PartsPartition", partition).parts:
            yield from read_segments(Path(part), self._port)


def closed(folder: Path, *, ended: bool) -> list[Path]:
    """The parts of a folder to which nothing will be added."""
    found = capture_parts.parts(folder)
    return found if ended else found[:-1]


def between(folder: Path, start: Offsets, end: Offsets) -> list[Path]:
    """The parts of a folder after one offset, up to and with another."""
    first, last = start.get(folder.name, NONE_READ), end.get(folder.name, NONE_READ)
    return [part for part in capture_parts.parts(folder) if first < capture_parts.number(part) <= last]


def latest(captures: Path, start: Offsets, *, ended: bool) -> dict[str, int]:
    """As far as a batch may read from `start`: all that is closed, oldest first, to about BATCH_BYTES_MAX."""
    waiting = [
        (capture_parts.number(part), folder.name, part.stat().st_size)
        for folder in capture_parts.folders(captures)
        for part in closed(folder, ended=ended)
        if capture_parts.number(part) > start.get(folder.name, NONE_READ)
    ]
    end, size = dict(start), 0
    for number, name, part_bytes in sorted(waiting):
        size += part_bytes
        if size > BATCH_BYTES_MAX and end != start:
            break
        end[name] = number
    return end


def read_segments(part: Path, port: int) -> Iterator[pa.RecordBatch]:
    """Segments from or to a port that carry payload or begin a connection, in the order of capture.

    A part that holds nothing, or nothing that can be read, has none: the analysis of the whole capture says
    what is wrong with it.
    """
    try:
        index = build_index(part)
    except CaptureError:
        return
    for span in spans_of(part, index, TimeRange()):
        for columns in read_columns(span):
            yield _batch(part, columns, port)


def _batch(part: Path, columns: Columns, port: int) -> pa.RecordBatch:
    values = pick_segments(columns, port)
    count = values["t_ns"].size
    folder, number = str(part.parent), capture_parts.number(part)
    arrays = [
        pa.repeat(pa.scalar(folder), count)
        if field.name == "folder"
        else pa.repeat(pa.scalar(number, pa.int64()), count)
        if field.name == "part"
        else pa.array(values[field.name]).cast(field.type)
        for field in SEGMENTS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SEGMENTS)
