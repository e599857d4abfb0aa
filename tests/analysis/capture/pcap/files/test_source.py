"""Spark reads captures with the format `pcap`: the rows of the core, split by the index, filtered by time."""

import gzip
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import LongType, StructType

from analysis.capture.pcap.files import record_batches, scan
from analysis.capture.pcap.files.index import load_index
from analysis.capture.pcap.files.naming import find_captures
from analysis.capture.pcap.files.record_batches import pack, read_span, spans_of
from analysis.capture.pcap.files.source import PcapReader, PcapSource, among, arrow_schema, narrow, register
from analysis.capture.time_range import TimeRange
from analysis.errors import CaptureError
from analysis.schemas import PACKETS, spark_schema
from tests.analysis.capture.pcap.captures import START_NS, at_intervals, segment, write_pcap

PACKETS_PER_CAPTURE = 500
STEP_NS = 1_000_000


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    for number, name in enumerate(("a", "b")):
        records = at_intervals(segment(n * 10 + number, bytes(10)) for n in range(PACKETS_PER_CAPTURE))
        write_pcap(folder / f"{name}.pcap", records)
    return folder


@pytest.fixture
def _small_splits(monkeypatch: pytest.MonkeyPatch, captures: Path) -> Iterator[None]:
    for path in captures.glob("*.index"):
        path.unlink()
    monkeypatch.setattr(scan, "SPLIT_BYTES", 1000)
    monkeypatch.setattr(record_batches, "SPAN_BYTES", 3000)
    yield
    for path in captures.glob("*.index"):
        path.unlink()


def core_rows(captures: Path, times: TimeRange | None = None) -> list[dict[str, object]]:
    found = []
    for path in sorted(captures.glob("*.pcap")):
        for span in spans_of(path, load_index(path)):
            found += pa.Table.from_batches(read_span(span, PACKETS, times), PACKETS).to_pylist()
    return found


@pytest.mark.usefixtures("_small_splits")
def test_spans_cover_a_capture_exactly_once(captures: Path) -> None:
    path = captures / "a.pcap"
    spans = list(spans_of(path, load_index(path)))
    assert len(spans) > 10
    assert [span.start for span in spans] == [24, *[span.end for span in spans[:-1]]]
    assert spans[-1].end == path.stat().st_size
    packed = list(pack(spans * 2))
    assert [span for together in packed for span in together] == spans * 2
    assert len(core_rows(captures)) == 2 * PACKETS_PER_CAPTURE


@pytest.mark.usefixtures("_small_splits")
def test_a_time_filter_skips_spans_and_cuts_the_rest_exactly(captures: Path) -> None:
    path = captures / "a.pcap"
    times = TimeRange(START_NS + 200 * STEP_NS, START_NS + 210 * STEP_NS)
    spans = list(spans_of(path, load_index(path), times))
    assert sum(span.end - span.start for span in spans) < path.stat().st_size / 5
    only_times = pa.schema([PACKETS.field("t_ns")])
    rows = [
        row for span in spans for batch in read_span(span, only_times, times) for row in batch.to_pylist()
    ]
    assert [row["t_ns"] for row in rows] == [START_NS + n * STEP_NS for n in range(200, 210)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (GreaterThan(("t_ns",), 5), TimeRange(6, 20)),
        (GreaterThanOrEqual(("t_ns",), 5), TimeRange(5, 20)),
        (GreaterThan(("t_ns",), 1), TimeRange(3, 20)),
        (LessThan(("t_ns",), 9), TimeRange(3, 9)),
        (LessThanOrEqual(("t_ns",), 9), TimeRange(3, 10)),
        (LessThan(("t_ns",), 90), TimeRange(3, 20)),
        (EqualTo(("t_ns",), 5), None),
        (LessThan(("length",), 5), None),
    ],
)
def test_filters_on_time_narrow_the_range_and_others_are_left_to_spark(
    given: Filter, expected: TimeRange | None
) -> None:
    assert narrow(TimeRange(3, 20), given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (EqualTo(("dport",), 7000), ("dport", frozenset({7000}))),
        (In(("proto",), (6, 17)), ("proto", frozenset({6, 17}))),
        (EqualTo(("capture",), "a"), None),
        (EqualTo(("dport",), None), None),
        (In(("dport",), (7000, None)), None),
        (EqualTo(("dport", "x"), 1), None),
        (GreaterThan(("dport",), 7000), None),
    ],
)
def test_filters_comparing_numbers_with_constants_are_accepted(given: Filter, expected: object) -> None:
    assert among(given) == expected


@pytest.mark.usefixtures("_small_splits")
def test_filtered_rows_do_not_leave_the_source(captures: Path) -> None:
    reader = PcapReader(str(captures), spark_schema(PACKETS))
    [row, *_] = core_rows(captures)
    wanted = [EqualTo(("seq",), row["seq"]), In(("proto",), (6, 17)), EqualTo(("capture",), "a")]
    assert list(reader.pushFilters(wanted)) == wanted[2:]
    found = [batch.to_pylist() for each in reader.partitions() for batch in reader.read(each)]
    assert [each for rows in found for each in rows] == [
        each for each in core_rows(captures) if each["seq"] == row["seq"]
    ]


def test_an_unknown_column_or_another_type_is_refused_by_name() -> None:
    with pytest.raises(CaptureError, match="no column 'lenght'"):
        arrow_schema(StructType().add("t_ns", LongType()).add("lenght", LongType()))
    with pytest.raises(CaptureError, match="'length' of packets must be int"):
        arrow_schema(StructType().add("length", LongType()))


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_file_url_is_accepted_as_a_path(captures: Path, tmp_path: Path, form: str) -> None:
    folder = tmp_path / "a 50% copy"
    folder.symlink_to(captures)
    url = form.format(folder if form == "{}" else quote(str(folder)))
    reader = PcapSource({"path": url}).reader(spark_schema(PACKETS))
    assert sum(batch.num_rows for each in reader.partitions() for batch in reader.read(each)) == 1000


def test_captures_are_found_by_folder_file_or_pattern(captures: Path) -> None:
    both = [captures / "a.pcap", captures / "b.pcap"]
    assert find_captures(str(captures)) == both
    assert find_captures(str(captures / "*.pcap")) == both
    assert find_captures(str(captures / "b.pcap")) == both[1:]
    with pytest.raises(CaptureError, match="no captures there"):
        find_captures(str(captures / "c*.pcap"))


@pytest.mark.parametrize(
    ("option", "given"), [("segments", "x"), ("segments", "70000"), ("maxBytesPerTrigger", "0")]
)
def test_an_invalid_option_is_refused(captures: Path, option: str, given: str) -> None:
    source = PcapSource({"path": str(captures), option: given})
    with pytest.raises(CaptureError, match=rf"option {option} must be a number from 1.*\(got '{given}'\)"):
        source.streamReader(spark_schema(PACKETS))


@pytest.mark.spark
def test_an_empty_time_range_and_an_empty_capture_have_no_rows(
    spark: SparkSession, captures: Path, tmp_path: Path
) -> None:
    register(spark)
    whole = spark.read.format("pcap").load(str(captures))
    assert whole.where("t_ns > 9000000000000000000").count() == 0
    write_pcap(tmp_path / "none.pcap", [])
    assert spark.read.format("pcap").load(str(tmp_path)).count() == 0


@pytest.mark.spark
def test_spark_reads_every_form_of_a_capture(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    """All forms have the core's packets under the same names, at different file offsets."""
    register(spark)
    subprocess.run(["editcap", "-F", "pcapng", captures / "a.pcap", tmp_path / "a.pcapng"], check=True)
    (tmp_path / "b.pcap.gz").write_bytes(gzip.compress((captures / "b.pcap").read_bytes()))
    found = spark.read.format("pcap").load(str(tmp_path)).orderBy("capture", "offset").toArrow()
    plain = spark.read.format("pcap").load(str(captures)).orderBy("capture", "offset").toArrow()
    assert found.drop("offset").equals(plain.drop("offset"))
    assert plain.to_pylist() == core_rows(captures)


@pytest.mark.spark
def test_a_narrow_schema_gives_those_columns_and_a_filter_its_rows(
    spark: SparkSession, captures: Path
) -> None:
    register(spark)
    narrow_rows = spark.read.format("pcap").schema("seq bigint, t_ns bigint").load(str(captures / "a.pcap"))
    chosen = narrow_rows.where(
        f"t_ns >= {START_NS + 7 * STEP_NS} and t_ns < {START_NS + 9 * STEP_NS} and seq > 70"
    )
    assert [tuple(row) for row in chosen.collect()] == [(80, START_NS + 8 * STEP_NS)]
    whole = spark.read.format("pcap").load(str(captures))
    found = (
        whole.where("seq in (70, 80, 81) and proto = 6").select("capture", "seq").orderBy("capture", "seq")
    )
    assert [tuple(row) for row in found.collect()] == [("a", 70), ("a", 80), ("b", 81)]


@pytest.mark.spark
def test_the_documented_example_works(spark: SparkSession, captures: Path) -> None:
    page = (Path(__file__).parents[5] / "docs/captures.md").read_text()
    [code, _] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    known: dict[str, Any] = {"spark": spark}
    exec(code.replace("captures/", str(captures)), known)
    assert known["packets"].count() == 2 * PACKETS_PER_CAPTURE


@pytest.mark.spark
def test_spark_names_a_capture_that_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    (tmp_path / "odd.pcap").write_bytes(b"no capture, but long enough for a header")
    with pytest.raises(PySparkException, match=r"odd\.pcap: neither a pcap nor a pcapng file"):
        spark.read.format("pcap").load(str(tmp_path)).count()
