"""Growing captures: every record is read once, as in the complete capture, wherever reading pauses."""

import gzip
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from analysis.capture.pcap.files import scan
from analysis.capture.pcap.files.growing import STRICT, GrowingCaptures, Lenience
from analysis.capture.pcap.files.index import load_index
from analysis.capture.pcap.files.record_batches import read_span, spans_of
from analysis.capture.pcap.files.source import PcapStreamReader
from analysis.errors import CaptureError
from analysis.schemas import PACKETS, spark_schema
from tests.analysis.capture.pcap.captures import Record, at_intervals, pcap_bytes, segment, write_pcap

PACKETS_THERE, HEADER_BYTES = 12, 24
Place = dict[str, Any]


def records(count: int = PACKETS_THERE) -> list[Record]:
    return at_intervals(segment(number * 10, bytes(10)) for number in range(count))


RECORD_BYTES = (len(pcap_bytes(records())) - HEADER_BYTES) // PACKETS_THERE


class Reading:
    """Reads batch by batch as Spark does, each perhaps in another process."""

    def __init__(self, path: Path, *, lenience: Lenience = STRICT, again: bool = False) -> None:
        self._make = lambda: PcapStreamReader(GrowingCaptures(str(path), lenience), spark_schema(PACKETS))
        self._again = again
        self._reader = self._make()
        self.place: Place = {}

    @property
    def reader(self) -> PcapStreamReader:
        if self._again:
            self._reader = self._make()
        return self._reader

    def rows(self, bytes_max: int | None = None) -> list[dict[str, Any]]:
        """Return the rows of one batch."""
        limit = ReadAllAvailable() if bytes_max is None else ReadMaxBytes(bytes_max)
        end = self.reader.latestOffset(self.place, limit)
        start, self.place = self.place, end
        return rows_between(self.reader, start, end)

    def report(self) -> dict[str, Any]:
        return self._reader.reportLatestOffset()


def rows_between(reader: PcapStreamReader, start: Place, end: Place) -> list[dict[str, Any]]:
    batches = [batch for each in reader.partitions(start, end) for batch in reader.read(each)]
    return [row for batch in batches for row in batch.to_pylist()]


def core_rows(*captures: Path) -> list[dict[str, Any]]:
    spans = (span for path in captures for span in spans_of(path, load_index(path)))
    return [
        row for span in spans for row in pa.Table.from_batches(read_span(span, PACKETS), PACKETS).to_pylist()
    ]


def make_pcap(path: Path) -> Path:
    return write_pcap(path.with_suffix(".pcap"), records())


def make_pcapng(path: Path) -> Path:
    """Write two sections with different time resolutions."""
    plain, path = path.parent / "plain", path.with_suffix(".pcapng")
    content = b""
    for nanoseconds in (True, False):
        write_pcap(plain, records(), nanoseconds=nanoseconds)
        subprocess.run(["editcap", "-F", "pcapng", plain, path], check=True)
        content += path.read_bytes()
    path.write_bytes(content)
    plain.unlink()
    return path


@pytest.mark.parametrize(
    ("step", "make", "again"),
    [(7, make_pcap, True), (250, make_pcap, False), (1, make_pcapng, False), (7, make_pcapng, True)],
)
def test_a_growing_capture_gives_the_rows_of_the_complete_one(
    make: Callable[[Path], Path], tmp_path: Path, step: int, again: bool
) -> None:
    whole = make(tmp_path / "a")
    content = whole.read_bytes()
    (tmp_path / "captures").mkdir()
    growing = tmp_path / "captures" / whole.name
    reading, found = Reading(tmp_path / "captures", again=again), []
    for size in [*range(0, len(content), step if step > 1 else 13), len(content)]:
        growing.write_bytes(content[:size])
        found += reading.rows()
    assert found == core_rows(whole)
    assert reading.place[whole.name]["bytes"] == len(content)


@pytest.mark.parametrize("again", [False, True], ids=["going on", "restarted"])
def test_a_batch_is_bounded_in_bytes_and_the_next_one_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    monkeypatch.setattr(scan, "SPLIT_BYTES", 100)
    captures = [write_pcap(tmp_path / f"{name}.pcap", records()) for name in "ab"]
    reading = Reading(tmp_path, again=again)
    turns = [reading.rows(3 * RECORD_BYTES) for _ in range(10)]
    assert max(map(len, turns)) == 3
    assert [row for rows in turns for row in rows] == core_rows(*captures)


def test_a_batch_that_is_planned_again_has_the_same_rows(tmp_path: Path) -> None:
    write_pcap(tmp_path / "a.pcap", records())
    reading = Reading(tmp_path)
    first = reading.rows(4 * RECORD_BYTES)
    start, end = {}, reading.place
    write_pcap(tmp_path / "a.pcap", records(2 * PACKETS_THERE))
    assert rows_between(Reading(tmp_path).reader, start, end) == first


def test_new_captures_are_read_and_no_record_is_read_twice(tmp_path: Path) -> None:
    reading = Reading(tmp_path / "captures")
    assert reading.rows() == []  # not even the folder is there
    (tmp_path / "captures").mkdir()
    a, b = (tmp_path / "captures" / f"{name}.pcap" for name in "ab")
    write_pcap(a, records())
    assert reading.rows() == core_rows(a)
    write_pcap(b, records())
    assert reading.rows() == core_rows(b)
    assert reading.rows() == []
    assert {row["capture"] for row in Reading(tmp_path / "captures" / "a*.pcap").rows()} == {"a"}


def test_a_compressed_capture_is_read_when_it_no_longer_changes(tmp_path: Path) -> None:
    whole = write_pcap(tmp_path / "a.pcap", records())
    (tmp_path / "captures").mkdir()
    packed = tmp_path / "captures" / "a.pcap.gz"
    reading = Reading(tmp_path / "captures")
    for size in (100, 200):
        packed.write_bytes(gzip.compress(whole.read_bytes())[:size])
        assert reading.rows() == []
    packed.write_bytes(gzip.compress(whole.read_bytes()))
    assert reading.rows() == []
    assert reading.rows() == core_rows(whole)
    assert reading.rows() == []


@pytest.mark.parametrize("again", [False, True], ids=["going on", "restarted"])
def test_a_capture_that_is_compressed_after_it_was_read_is_not_read_again(
    tmp_path: Path, again: bool
) -> None:
    whole = write_pcap(tmp_path / "a.pcap", records())
    (tmp_path / "captures").mkdir()
    plain, packed = tmp_path / "captures" / "a.pcap", tmp_path / "captures" / "a.pcap.gz"
    plain.write_bytes(whole.read_bytes()[: HEADER_BYTES + 4 * RECORD_BYTES])
    reading = Reading(tmp_path / "captures", again=False)
    found = reading.rows()
    plain.unlink()
    packed.write_bytes(gzip.compress(whole.read_bytes()))
    if again:
        place, reading = reading.place, Reading(tmp_path / "captures")
        reading.place = place
    for _ in range(3):
        found += reading.rows()
    assert found == core_rows(whole)


def cut_off(content: bytes) -> bytes:
    return content[:-5]


def damaged(content: bytes) -> bytes:
    """Put an impossible length into the last record's header."""
    at = len(content) - RECORD_BYTES
    return content[: at + 8] + b"\xff\xff\xff\x7f" + content[at + 12 :]


@pytest.mark.parametrize(("harm", "said"), [(cut_off, "cut off"), (damaged, "damaged record header")])
def test_rows_before_the_damage_are_given_and_the_damage_is_reported(
    tmp_path: Path, harm: Callable[[bytes], bytes], said: str
) -> None:
    a, b = (write_pcap(tmp_path / f"{name}.pcap", records()) for name in "ab")
    a.write_bytes(harm(a.read_bytes()))
    reading = Reading(tmp_path)
    assert reading.rows() == core_rows(a, b)
    assert reading.rows() == []
    report = reading.report()
    assert list(report["problems"]) == ["a.pcap"]
    assert report["problems"]["a.pcap"].startswith(said)
    assert report["captures"]["a.pcap"]["bytes"] > reading.place["a.pcap"]["bytes"]


OTHERS = {
    "became shorter": (2, 10),
    "differs from the capture that was read to byte": (3 * PACKETS_THERE, 17),
    "differs from the capture": (3 * PACKETS_THERE, 10),  # its records are as long
}


def another(capture: Path, count: int = 3 * PACKETS_THERE, size: int = 17) -> None:
    write_pcap(capture, at_intervals(segment(number, bytes(size)) for number in range(count)))


@pytest.mark.parametrize("problem", OTHERS)
def test_a_replaced_capture_is_reported(tmp_path: Path, problem: str) -> None:
    capture = write_pcap(tmp_path / "a.pcap", records())
    reading = Reading(tmp_path, again=True)
    reading.rows()
    another(capture, *OTHERS[problem])
    with pytest.raises(CaptureError, match=problem):
        reading.rows()


def test_a_replaced_capture_is_skipped_until_it_changes(tmp_path: Path) -> None:
    capture = write_pcap(tmp_path / "a.pcap", records())
    content = capture.read_bytes()
    first = Reading(tmp_path)
    first.rows()
    reading = Reading(tmp_path, lenience=Lenience(corrupt=True))
    reading.place = first.place
    another(capture)
    assert reading.rows() == []
    capture.write_bytes(capture.read_bytes() + b"more")
    assert reading.rows() == []
    assert "differs from the capture that was read" in reading.report()["problems"]["a.pcap"]
    capture.write_bytes(content + pcap_bytes(records(2))[HEADER_BYTES:])
    assert len(reading.rows()) == 2


def gone_between(captures: Path, lenience: Lenience) -> list[dict[str, Any]]:
    """Plan a batch, remove a capture, read the batch."""
    reader = Reading(captures, lenience=lenience).reader
    end = reader.latestOffset({}, ReadAllAvailable())
    (captures / "a.pcap").unlink()
    return rows_between(reader, {}, end)


def test_a_capture_removed_before_reading_is_reported_or_skipped_on_request(tmp_path: Path) -> None:
    for name in "ab":
        write_pcap(tmp_path / f"{name}.pcap", records())
    with pytest.raises(CaptureError, match=r"a\.pcap: bytes 0 to \d+ were removed .* ignoreMissingFiles"):
        gone_between(tmp_path, STRICT)
    write_pcap(tmp_path / "a.pcap", records())
    assert gone_between(tmp_path, Lenience(missing=True)) == core_rows(tmp_path / "b.pcap")


def test_a_capture_removed_after_reading_is_forgotten(tmp_path: Path) -> None:
    capture = write_pcap(tmp_path / "a.pcap", records())
    reading = Reading(tmp_path)
    expected = reading.rows()
    capture.unlink()
    assert reading.rows() == []
    assert reading.place == {}
    write_pcap(capture, records())
    assert reading.rows() == expected


def test_present_data_can_be_read_without_later_data(tmp_path: Path) -> None:
    """As with Spark's trigger `availableNow`, in bounded batches."""
    a = write_pcap(tmp_path / "a.pcap", records())
    (tmp_path / "b.pcap.gz").write_bytes(gzip.compress(a.read_bytes()))
    reading = Reading(tmp_path)
    reading.reader.prepareForTriggerAvailableNow()
    now = core_rows(a)
    write_pcap(a, records(2 * PACKETS_THERE))
    write_pcap(tmp_path / "c.pcap", records())
    turns = list(until_none(lambda: reading.rows(5 * RECORD_BYTES)))
    assert max(map(len, turns)) == 5
    found = [row for rows in turns for row in rows]
    assert [row for row in found if row["capture"] == "a"] == now
    assert len([row for row in found if row["capture"] == "b"]) == PACKETS_THERE
    assert {row["capture"] for row in found} == {"a", "b"}


def until_none(rows: Callable[[], list[dict[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
    while found := rows():
        yield found
