"""Spark reads captures that stand in a store, as it reads those of this machine."""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest
from pyarrow.fs import copy_files
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from analysis.capture.pcap import record_batches, scan
from analysis.capture.pcap.index import load_index, sidecar
from analysis.capture.pcap.record_batches import TimeRange
from analysis.capture.pcap.source import PcapReader, register
from analysis.capture.pcap.stored import FETCHING, stored_spans
from analysis.errors import CaptureError
from analysis.schemas import PACKETS, spark_schema
from analysis.spark_home import local_folder
from experiments.rundir import INDEX
from experiments.stores import reached
from tests.analysis.capture.pcap.captures import START_NS, at_intervals, segment, write_pcap

PACKETS_EACH = 500
STEP_NS = 1_000_000
URL = "s3a://lab/{}?{}"


@pytest.fixture
def captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plain one, one that has its index, of many spans, and one that is compressed."""
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
    """Puts a folder there; its URL."""
    store, path = reached(URL.format(name, s3))
    copy_files(str(captures), path, destination_filesystem=store)
    return URL.format(name, s3)


def rows(path: str, times: TimeRange | None = None) -> list[dict[str, object]]:
    reader = PcapReader(path, spark_schema(PACKETS))
    reader._times = times or TimeRange()
    batches = (batch for each in reader.partitions() for batch in reader.read(each))
    found = [row for batch in batches for row in batch.to_pylist()]
    return sorted(found, key=lambda row: (row["capture"], row["offset"]))


def test_captures_of_any_form_have_the_rows_that_they_have_here(s3: str, captures: Path) -> None:
    url = stored(captures, s3, "rows")
    assert rows(url) == rows(str(captures))
    assert len(rows(url)) == 3 * PACKETS_EACH
    assert not list(local_folder().glob(f"{FETCHING}*"))


def test_of_a_capture_with_an_index_each_task_fetches_its_own_bytes(s3: str, captures: Path) -> None:
    url = stored(captures, s3, "spans").replace("spans?", "spans/indexed.pcap?")
    size = (captures / "indexed.pcap").stat().st_size
    spans = list(stored_spans(url, TimeRange()))
    assert len(spans) > 5
    assert sum(span.end - span.start for span in spans) == size - 24
    times = TimeRange(START_NS + 200 * STEP_NS, START_NS + 210 * STEP_NS)
    few = list(stored_spans(url, times))
    assert sum(span.end - span.start for span in few) < size / 5
    assert [row["t_ns"] for row in rows(url, times)] == [START_NS + n * STEP_NS for n in range(200, 210)]


def test_patterns_and_single_captures_mean_what_they_mean_here(s3: str, captures: Path) -> None:
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


@pytest.mark.parametrize("lie", ["other places", "other size", "no index", "no splits there"])
def test_an_index_that_lies_gives_no_wrong_rows(s3: str, captures: Path, lie: str) -> None:
    index = sidecar(captures / "indexed.pcap")
    said = json.loads(index.read_text())
    if lie == "other places":
        for before, after in pairwise(said["splits"]):
            before["end"] = after["offset"] = after["offset"] + 2
    elif lie == "other size":
        said["file_bytes"] += 1
    elif lie == "no splits there":
        said["splits"][-1]["end"] = said["file_bytes"] + 1000
    index.write_text("{" if lie == "no index" else json.dumps(said))
    url = stored(captures, s3, lie.replace(" ", "-"))
    if lie == "other places":
        with pytest.raises(CaptureError, match=f"indexed.pcap{INDEX}, is of another capture: remove it"):
            rows(url)
    else:
        assert len(rows(url)) == 3 * PACKETS_EACH


def test_a_stream_by_url_and_a_store_that_is_not_there_are_refused(s3: str) -> None:
    for url, problem in (
        (URL.format("nothing/of/the/kind", s3), "no captures there"),
        ("s3://lab/x?endpoint_override=127.0.0.1:9&scheme=http", "cannot be read or written there"),
        ("gopher://lab/x", "cannot be read or written there"),
    ):
        with pytest.raises(CaptureError, match=problem):
            rows(url)


@pytest.mark.spark
def test_spark_asks_captures_in_s3(s3: str, spark: SparkSession, captures: Path) -> None:
    register(spark)
    url = stored(captures, s3, "asked")
    found = spark.read.format("pcap").load(url).orderBy("capture", "offset").toArrow().to_pylist()
    assert found == rows(str(captures))
    assert spark.read.format("pcap").load(url).where("dport = 7 or seq = 70").count() == 1
    with pytest.raises(PySparkException, match="captures that grow are read from folders, not by URL"):
        spark.readStream.format("pcap").load(url).writeStream.format("console").start().awaitTermination(60)
