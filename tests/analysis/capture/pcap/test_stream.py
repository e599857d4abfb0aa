"""`spark.readStream` with the format `pcap`: captures that appear and grow, each record once, also after a
restart from the checkpoint.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from analysis.capture.pcap.files.source import register
from tests.analysis.capture.pcap.captures import Record, at_intervals, pcap_bytes, segment, write_pcap

pytestmark = pytest.mark.spark

COUNT, HEADER_BYTES = 40, 24


def records(count: int = COUNT) -> list[Record]:
    return at_intervals(segment(number * 10, bytes(10)) for number in range(count))


class Stream:
    """A query over a folder that can be stopped and started again from its checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        register(spark)
        self._spark = spark
        self._checkpoint = folder / "checkpoint"
        self.captures = folder / "captures"
        self.captures.mkdir()
        self._taken: list[pa.Table] = []
        self._running: list[StreamingQuery] = []

    def start(
        self, schema: str | None = None, where: str = "true", *, all_now: bool = False, **options: str
    ) -> StreamingQuery:
        reader = self._spark.readStream.format("pcap").options(**options)
        if schema is not None:
            reader = reader.schema(schema)

        def take(batch: DataFrame, _number: int) -> None:
            self._taken.append(batch.toArrow())

        writer = (
            reader.load(str(self.captures))
            .where(where)
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(self._checkpoint))
        )
        trigger = writer.trigger(availableNow=True) if all_now else writer.trigger(processingTime="0 seconds")
        self._running.append(trigger.start())
        return self._running[-1]

    def taken(self) -> list[list[dict[str, Any]]]:
        """Return the rows of each batch since the last call, without empty batches."""
        batches, self._taken = [table.to_pylist() for table in self._taken], []
        return [rows for rows in batches if rows]

    def table(self, folder: Path) -> list[dict[str, Any]]:
        """Return the rows of a batch read of the complete captures in another folder."""
        rows = self._spark.read.format("pcap").load(str(folder)).orderBy("capture", "offset")
        return rows.toArrow().to_pylist()

    def stop(self) -> None:
        for query in self._running:
            query.stop()


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Iterator[Stream]:
    made = Stream(spark, tmp_path)
    yield made
    made.stop()


def test_a_restarted_query_over_growing_captures_gives_the_rows_of_the_table(
    stream: Stream, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    for name in "ab":
        write_pcap(whole / f"{name}.pcap", records())
    content = (whole / "a.pcap").read_bytes()
    found: list[dict[str, Any]] = []

    def grow(size: int) -> None:
        with (stream.captures / "a.pcap").open("ab") as growing:
            growing.write(content[growing.tell() : size])

    query = stream.start()
    for size in (10, 1_000, 1_777):
        grow(size)
        query.processAllAvailable()
    query.stop()
    grow(2_500)
    query = stream.start()
    query.processAllAvailable()
    (stream.captures / "b.pcap").write_bytes((whole / "b.pcap").read_bytes())
    query.processAllAvailable()
    grow(len(content))
    query.processAllAvailable()

    turns = stream.taken()
    assert len(turns) == 5
    found = sorted((row for rows in turns for row in rows), key=lambda row: (row["capture"], row["offset"]))
    assert found == stream.table(whole)


def test_a_schema_restricts_the_columns_and_spark_applies_filters(stream: Stream) -> None:
    write_pcap(stream.captures / "a.pcap", records())
    query = stream.start("seq bigint, capture string", "seq in (70, 80, 81)")
    query.processAllAvailable()
    assert stream.taken() == [[{"seq": 70, "capture": "a"}, {"seq": 80, "capture": "a"}]]


def test_segments_of_a_port_are_selected_by_the_reading_task(stream: Stream, spark: SparkSession) -> None:
    other = segment(7, bytes(10), dst=("10.0.0.2", 80))
    bare = segment(9)
    write_pcap(stream.captures / "a.pcap", at_intervals([segment(5, bytes(10)), other, bare]))
    query = stream.start("seq bigint", segments="7000")
    query.processAllAvailable()
    assert stream.taken() == [[{"seq": 5}]]
    batch = spark.read.format("pcap").option("segments", "7000").load(str(stream.captures))
    assert [row["seq"] for row in batch.collect()] == [5]


def test_batches_are_bounded_and_available_now_reads_everything(stream: Stream) -> None:
    for name in "ab":
        write_pcap(stream.captures / f"{name}.pcap", records())
    query = stream.start("capture string, seq bigint", all_now=True, maxBytesPerTrigger="1000")
    assert query.awaitTermination(60)
    turns = stream.taken()
    assert 1 < max(map(len, turns)) < COUNT / 2
    found = [(row["capture"], row["seq"]) for rows in turns for row in rows]
    assert found == [(name, number * 10) for name in "ab" for number in range(COUNT)]


def test_a_captures_errors_are_in_the_querys_progress(stream: Stream) -> None:
    content = pcap_bytes(records())
    record_bytes = (len(content) - HEADER_BYTES) // COUNT
    at = HEADER_BYTES + 12 * record_bytes
    harmed = content[:at] + b"\xff" * record_bytes + content[at + record_bytes :]
    (stream.captures / "a.pcap").write_bytes(harmed)
    write_pcap(stream.captures / "b.pcap", records())
    query = stream.start("capture string")
    query.processAllAvailable()
    found = [row["capture"] for rows in stream.taken() for row in rows]
    assert (found.count("a"), found.count("b")) == (12, COUNT)
    [said] = [source for each in query.recentProgress if each["numInputRows"] for source in each["sources"]]
    there, read = json.loads(said["latestOffset"]), json.loads(said["endOffset"])
    assert "damaged record header" in there["problems"]["a.pcap"]
    assert there["captures"]["a.pcap"]["bytes"] == len(harmed) > read["a.pcap"]["bytes"]
    assert there["captures"]["b.pcap"]["bytes"] == read["b.pcap"]["bytes"]


def test_a_file_other_than_a_capture_ends_the_query_unless_ignored(
    stream: Stream,
) -> None:
    write_pcap(stream.captures / "good.pcap", records())
    (stream.captures / "odd.pcap").write_bytes(b"no capture, but long enough for a header")
    query = stream.start("capture string")
    with pytest.raises(PySparkException, match=r"odd\.pcap: neither a pcap nor a pcapng file"):
        query.processAllAvailable()
    query = stream.start("capture string", ignoreCorruptFiles="true")
    query.processAllAvailable()
    assert stream.taken() == [[{"capture": "good"}] * COUNT]


def test_the_documented_example_works(stream: Stream, spark: SparkSession, tmp_path: Path) -> None:
    write_pcap(stream.captures / "a.pcap", records())
    page = (Path(__file__).parents[4] / "docs/captures.md").read_text()
    [_, code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    known: dict[str, Any] = {"spark": spark}
    exec(
        code.replace("captures/", str(stream.captures)).replace("checkpoint/", str(tmp_path / "checkpoint")),
        known,
    )
    query: StreamingQuery = known["query"]
    try:
        query.processAllAvailable()
        assert sum(each["numInputRows"] for each in query.recentProgress) == COUNT
    finally:
        query.stop()
