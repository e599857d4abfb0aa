"""The Spark data source for captures: `spark.read.format("pcap").load(folder)`, and `spark.readStream` for a
growing folder.

Partitions come from the captures' indices: several tasks share one big file, and a filter on `t_ns` skips
other parts. Filters that compare numbers (ports, protocols) with constants are applied before rows leave
Python. A stream's offsets record how much of each capture was read (`growing`); Spark pushes no filters to
streams. Rows have the schema `analysis.schemas.PACKETS`, or a narrower one given with `.schema(…)`: Spark
does not prune the columns of Python sources. Payload is not copied; it is found by `offset`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from analysis.capture.pcap.files.compressed import unpack
from analysis.capture.pcap.files.growing import GrowingCaptures, Lenience, Places
from analysis.capture.pcap.files.index import load_index
from analysis.capture.pcap.files.naming import find_captures
from analysis.capture.pcap.files.record_batches import Pick, RecordSpan, pack, read_span, spans_of
from analysis.capture.pcap.files.stored import StoredSpan, stored_spans
from analysis.capture.pcap.files.stores import is_url
from analysis.capture.pcap.segments import segment_rows
from analysis.capture.time_range import EVER, TimeRange
from analysis.errors import CaptureError
from analysis.schemas import PACKETS, spark_schema

SEGMENTS, BYTES_MAX = "segments", "maxBytesPerTrigger"
IGNORE_MISSING, IGNORE_CORRUPT = "ignoreMissingFiles", "ignoreCorruptFiles"
BATCH_BYTES_MAX = 128 << 20
PORTS = range(1, 1 << 16)


class PcapPartition(InputPartition):
    """The spans of captures that one task reads."""

    def __init__(self, spans: tuple[RecordSpan | StoredSpan, ...]) -> None:
        super().__init__(spans)
        self.spans = spans


class PcapSource(DataSource):
    """The data source `pcap`.

    Options: `path`, a capture, a folder of captures or a glob, local or at a URL; `segments`, a port, to read
    only its TCP segments that carry payload or begin or reset a connection. Options of streams:
    `maxBytesPerTrigger`; `ignoreMissingFiles` and `ignoreCorruptFiles`, as for Spark's own file sources.
    """

    @classmethod
    def name(cls) -> str:
        return "pcap"

    def schema(self) -> StructType:
        return spark_schema(PACKETS)

    def reader(self, schema: StructType) -> "PcapReader":
        return PcapReader(self._path, schema, self._pick())

    def streamReader(self, schema: StructType) -> "PcapStreamReader":  # noqa: N802  (Spark's name)
        options = self.options
        if is_url(self._path):
            raise CaptureError(f"{self._path}: growing captures can be read from folders only, not by URL")
        lenience = Lenience(
            missing=_flag(options.get(IGNORE_MISSING)), corrupt=_flag(options.get(IGNORE_CORRUPT))
        )
        captures = GrowingCaptures(self._path, lenience)
        bytes_max = _number(BYTES_MAX, options.get(BYTES_MAX, str(BATCH_BYTES_MAX)), range(1, 1 << 62))
        return PcapStreamReader(captures, schema, bytes_max=bytes_max, pick=self._pick())

    @property
    def _path(self) -> str:
        """The location of the captures. A `file:` URL of Hadoop, with or without `//`, becomes a path."""
        given = self.options.get("path", "")
        local = re.fullmatch(r"file:(?://)?(/.*)", given, re.DOTALL)
        return given if local is None else unquote(local[1])

    def _pick(self) -> Pick | None:
        port = self.options.get(SEGMENTS)
        return None if port is None else partial(segment_rows, port=_number(SEGMENTS, port, PORTS))


def _number(option: str, given: str, allowed: range) -> int:
    if not given.isdecimal() or int(given) not in allowed:
        last = f" to {allowed[-1]}" if allowed == PORTS else " up"
        raise CaptureError(f"option {option} must be a number from {allowed[0]}{last} (got {given!r})")
    return int(given)


def _flag(given: str | None) -> bool:
    return given is not None and given.lower() == "true"


class PcapReader(DataSourceReader):
    """Plans and reads a batch. It applies accepted filters exactly, so Spark need not apply them again."""

    def __init__(self, path: str, schema: StructType, pick: Pick | None = None) -> None:
        self._path = path
        self._captures = [] if is_url(path) else find_captures(path)
        self._schema = arrow_schema(schema)
        self._pick = pick
        self._times = EVER
        self._among: dict[str, frozenset[int]] = {}

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  (Spark's name)
        for given in filters:
            narrowed, wanted = narrow(self._times, given), among(given)
            if narrowed is not None:
                self._times = narrowed
            elif wanted is not None:
                name, values = wanted
                self._among[name] = values & self._among.get(name, values)
            else:
                yield given

    def partitions(self) -> list[InputPartition]:
        spans: Iterator[RecordSpan | StoredSpan]
        if is_url(self._path):
            spans = stored_spans(self._path, self._times)
        else:
            paths = map(unpack, self._captures)
            spans = (span for path in paths for span in spans_of(path, load_index(path), self._times))
        # At least one: if there is none, Spark makes a partition that `read` does not know.
        return [PcapPartition(together) for together in pack(spans)] or [PcapPartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for stretch in cast("PcapPartition", partition).spans:
            with stretch.fetched() if isinstance(stretch, StoredSpan) else nullcontext((stretch,)) as spans:
                for span in spans:
                    for batch in read_span(span, self._schema, self._times, self._pick):
                        yield _chosen(batch, self._among)


class PcapStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the batches of growing captures in one process, and reads them in others."""

    def __init__(
        self,
        captures: GrowingCaptures,
        schema: StructType,
        *,
        bytes_max: int = BATCH_BYTES_MAX,
        pick: Pick | None = None,
    ) -> None:
        self._captures = captures
        self._schema = arrow_schema(schema)
        self._bytes_max = bytes_max
        self._pick = pick

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxBytes(self._bytes_max)

    def latestOffset(self, start: Places, limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return self._captures.latest(start, limit.max_bytes if isinstance(limit, ReadMaxBytes) else None)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._captures.report()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._captures.stop_growing()

    def partitions(self, start: Places, end: Places) -> list[InputPartition]:
        return [PcapPartition(together) for together in pack(self._captures.between(start, end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        lenience = self._captures.lenience
        for span in cast("tuple[RecordSpan, ...]", cast("PcapPartition", partition).spans):
            try:
                yield from read_span(span, self._schema, pick=self._pick)
            except CaptureError:
                if not lenience.missing or Path(span.path).exists():
                    raise


def arrow_schema(asked: StructType) -> pa.Schema:
    """Return the requested columns of PACKETS. Raises CaptureError for another name or type."""
    known = {field.name: field for field in spark_schema(PACKETS)}
    for field in asked:
        if field.name not in known:
            raise CaptureError(f"packets have no column {field.name!r}; columns are {', '.join(known)}")
        wanted = known[field.name].dataType
        if field.dataType != wanted:
            raise CaptureError(f"column {field.name!r} of packets must be {wanted.simpleString()}")
    return pa.schema([PACKETS.field(field.name).with_nullable(field.nullable) for field in asked])


def narrow(times: TimeRange, given: Filter) -> TimeRange | None:
    """Narrow a time range by a filter on `t_ns`; None for any other filter."""
    if getattr(given, "attribute", None) != ("t_ns",):
        return None
    value = getattr(given, "value", None)
    if not isinstance(value, int):
        return None
    match given:
        case GreaterThan() | GreaterThanOrEqual():
            first = value + isinstance(given, GreaterThan)
            return replace(times, first_ns=max(first, first if times.first_ns is None else times.first_ns))
        case LessThan() | LessThanOrEqual():
            end = value + isinstance(given, LessThanOrEqual)
            return replace(times, end_ns=min(end, end if times.end_ns is None else times.end_ns))
    return None


def among(given: Filter) -> tuple[str, frozenset[int]] | None:
    """Return the column and the permitted values of a filter that compares numbers; None for another."""
    values: object
    match given:
        case EqualTo(attribute=(str(name),), value=value):
            values = (value,)
        case In(attribute=(str(name),), value=values):
            pass
        case _:
            return None
    is_number = name in PACKETS.names and pa.types.is_integer(PACKETS.field(name).type)
    if not is_number or not all(type(value) is int for value in cast("tuple[object, ...]", values)):
        return None
    return name, frozenset(cast("tuple[int, ...]", values))


def _chosen(batch: pa.RecordBatch, wanted: Mapping[str, frozenset[int]]) -> pa.RecordBatch:
    """Return the rows with wanted values in these columns."""
    for name, values in wanted.items():
        column = batch.column(name)
        batch = batch.filter(pc.is_in(column, pa.array(sorted(values), column.type)))
    return batch


def register(spark: SparkSession) -> None:
    """Register the data source with a Spark session."""
    spark.dataSource.register(PcapSource)
