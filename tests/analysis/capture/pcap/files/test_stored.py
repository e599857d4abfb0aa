"""Spark reads captures in a store like local ones."""

import gzip
import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from pyarrow.fs import copy_files
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from analysis.capture.pcap.files import record_batches, scan
from analysis.capture.pcap.files.index import load_index, sidecar
from analysis.capture.pcap.files.source import PcapReader, register
from analysis.capture.pcap.files.stored import FETCHING, stored_spans
from analysis.capture.pcap.files.stores import store_and_path
from analysis.capture.time_range import TimeRange
from analysis.errors import CaptureError
from analysis.schemas import PACKETS, spark_schema
from analysis.spark_home import local_folder
from analysis.taps.opening import opened
from experiments.records.rundir import INDEX
from tests.analysis.capture.pcap.captures import START_NS, at_intervals, segment, write_pcap

PACKETS_EACH = 500
STEP_NS = 1_000_000
URL = "s3a://lab/{}?{}"


@pytest.fixture
def captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a plain capture, one with an index and many spans, and a compressed one."""
    monkeypatch.setattr(scan, "SPLIT_BYTES", 1000)
    monkeypatch.setattr(record_batches, "SPAN_BYTES", 3000)
    folder = tmp_path / "captures"
    folder.mkdir()
    for number, name in enumerate(("indexed", "packed", "plain")):
        records = at_intervals(segment(n * 10 + number, bytes(10)) for n in range(PACKETS_EACH))
        write_pcap(folder / f"{name}.pcap", records)
    load_index(folder / "indexed.pcap")
    packed = folder / "packed.pcap"
    packed.with_suffix(".pcap.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    return folder


def stored(captures: Path, s3: str, name: str) -> str:
    """Copy a folder to S3 and return its URL."""
    store, path = store_and_path(URL.format(name, s3))
    copy_files(str(captures), path, destination_filesystem=store)
    return URL.format(name, s3)


def rows(path: str, times: TimeRange | None = None) -> list[dict[str, object]]:
    reader = PcapReader(path, spark_schema(PACKETS))
    reader._times = times or TimeRange()
    batches = (batch for each in reader.partitions() for batch in reader.read(each))
    found = [row for batch in batches for row in batch.to_pylist()]
    return sorted(found, key=lambda row: (row["capture"], row["offset"]))


@pytest.mark.slow
def test_stored_captures_of_every_form_have_the_rows_of_local_ones(s3: str, captures: Path) -> None:
    url = stored(captures, s3, "rows")
    assert rows(url) == rows(str(captures))
    assert len(rows(url)) == 3 * PACKETS_EACH
    assert not list(local_folder().glob(f"{FETCHING}*"))


def test_captures_in_a_store_can_be_queried_without_a_run(s3: str, captures: Path) -> None:
    url = stored(captures, s3, "taps")
    for name, count in (("", 3), ("/p*", 2), ("/packed.pcap.gz", 1)):
        with opened([url.replace("taps?", f"taps{name}?")]) as taps:
            rows = [row for tap in taps.taps for batch in tap.batches(PACKETS) for row in batch.to_pylist()]
        assert len(taps.taps) == count
        assert len(rows) == count * PACKETS_EACH
    with pytest.raises(CaptureError, match="no captures there"), opened([url.replace("taps?", "none?")]):
        pass


def test_each_task_fetches_only_its_bytes_of_an_indexed_capture(s3: str, captures: Path) -> None:
    url = stored(captures, s3, "spans").replace("spans?", "spans/indexed.pcap?")
    size = (captures / "indexed.pcap").stat().st_size
    spans = list(stored_spans(url, TimeRange()))
    assert len(spans) > 5
    assert sum(span.end - span.start for span in spans) == size - 24
    times = TimeRange(START_NS + 200 * STEP_NS, START_NS + 210 * STEP_NS)
    few = list(stored_spans(url, times))
    assert sum(span.end - span.start for span in few) < size / 5
    assert [row["t_ns"] for row in rows(url, times)] == [START_NS + n * STEP_NS for n in range(200, 210)]


def test_patterns_and_single_captures_work_as_for_local_files(s3: str, captures: Path) -> None:
    url = stored(captures, s3, "named")
    for pattern in ("p*.pcap", "*.gz", "plain.pcap", "*.pcapng"):
        here, there = str(captures / pattern), url.replace("named?", f"named/{pattern}?")
        try:
            expected = rows(here)
        except CaptureError:
            with pytest.raises(CaptureError, match="no captures there"):
                rows(there)
            continue
        assert rows(there) == expected


LIES = {
    "no index": lambda _: 1,
    "other size": lambda said: said | {"file_bytes": said["file_bytes"] + 1},
    "beyond the end": lambda said: (
        said | {"splits": [*said["splits"][:-1], said["splits"][-1] | {"end": 10**9}]}
    ),
    "twice": lambda said: said | {"splits": said["splits"] * 2},
    "no splits": lambda said: said | {"splits": []},
    "one is missing": lambda said: said | {"splits": said["splits"][1:]},
    "no sections": lambda said: said | {"sections": []},
    "another section": lambda said: said | {"splits": [split | {"section": 5} for split in said["splits"]]},
    "other times": lambda said: (
        said | {"splits": [split | {"first_ns": 5, "last_ns": 6} for split in said["splits"]]}
    ),
}


def test_impossible_indices_are_ignored(s3: str, captures: Path) -> None:
    capture = captures / "indexed.pcap"
    said = json.loads(sidecar(capture).read_text())
    for name, lie in {**LIES, "not JSON": lambda _: "[" * 200_000}.items():
        other = Path(shutil.copy2(capture, captures / f"{name}.pcap"))
        lied = lie(said)
        sidecar(other).write_text(lied if isinstance(lied, str) else json.dumps(lied))
    url = stored(captures, s3, "lies")
    expected = rows(str(captures))
    assert len(expected) == (3 + 1 + len(LIES)) * PACKETS_EACH
    assert rows(url) == expected


def test_the_index_of_a_replaced_capture_of_equal_size_is_not_used(s3: str, captures: Path) -> None:
    later = at_intervals((segment(n, bytes(10)) for n in range(PACKETS_EACH)), START_NS + 10**15)
    write_pcap(captures / "indexed.pcap", later)
    times = TimeRange(START_NS + 10**14)
    assert len(rows(stored(captures, s3, "replaced"), times)) == PACKETS_EACH


@pytest.mark.slow
def test_a_capture_replaced_after_planning_is_refused(s3: str, captures: Path) -> None:
    url = stored(captures, s3, "changing")
    reader = PcapReader(url, spark_schema(PACKETS))
    planned = reader.partitions()
    write_pcap(captures / "plain.pcap", at_intervals(segment(n, bytes(99)) for n in range(PACKETS_EACH)))
    stored(captures, s3, "changing")
    with pytest.raises(CaptureError, match="changed since its reading was planned"):
        [list(reader.read(each)) for each in planned]


def test_an_undetected_wrong_index_gives_no_wrong_rows(s3: str, captures: Path) -> None:
    index = sidecar(captures / "indexed.pcap")
    said = json.loads(index.read_text())
    half = len(said["splits"]) // 2
    for number, (before, after) in enumerate(pairwise(said["splits"]), 1):
        if number not in {half, len(said["splits"]) - 1}:  # where it is looked at
            before["end"] = after["offset"] = after["offset"] + 2
    index.write_text(json.dumps(said))
    url = stored(captures, s3, "lying")
    with pytest.raises(CaptureError, match=f"indexed.pcap{INDEX}, is of another capture: remove it"):
        rows(url)


def test_streaming_by_url_and_missing_stores_are_refused(s3: str) -> None:
    for url, problem in (
        (URL.format("nothing/of/the/kind", s3), "no captures there"),
        ("s3://lab/x?endpoint_override=127.0.0.1:9&scheme=http", "cannot be read there"),
        ("gopher://lab/x", "cannot be read there"),
    ):
        with pytest.raises(CaptureError, match=problem):
            rows(url)


def test_read_errors_are_not_blamed_on_the_store(s3: str, captures: Path) -> None:
    reader = PcapReader(stored(captures, s3, "read"), spark_schema(PACKETS))
    first = reader.partitions()[0]
    batches = reader.read(first)
    next(batches)
    with pytest.raises(ValueError, match="of the reader"):
        batches.throw(ValueError("of the reader"))  # type: ignore[attr-defined]
    assert not list(local_folder().glob(f"{FETCHING}*"))


@pytest.mark.spark
def test_spark_queries_captures_in_s3(s3: str, spark: SparkSession, captures: Path) -> None:
    register(spark)
    url = stored(captures, s3, "asked")
    found = spark.read.format("pcap").load(url).orderBy("capture", "offset").toArrow().to_pylist()
    assert found == rows(str(captures))
    assert spark.read.format("pcap").load(url).where("dport = 7 or seq = 70").count() == 1
    with pytest.raises(PySparkException, match="growing captures can be read from folders only, not by URL"):
        spark.readStream.format("pcap").load(url).writeStream.format("console").start().awaitTermination(60)
