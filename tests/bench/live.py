"""The cost of the live view: its start, its speed on existing parts, the delay from a closed part to its
decoding, and the processor time of both.

The captures are clients' captures, cut into parts as tcpdump would. All data passes the view's own query and
decoder; the query polls for new parts continuously instead of every second, so that the delay is processing
time only.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from analysis.capture.pcap.files.format import FILE_HEADER_BYTES
from analysis.capture.pcap.files.index import build_index
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.walk import walk
from analysis.live.decoder import LiveDecoder
from analysis.live.query import MASTER, SESSION, LiveQuery, warm_up
from analysis.session import spark_session
from analysis.timelines.run_metadata import Host
from experiments.records import capture_parts
from node.protocols.sprinkler.messages import CODEC
from node.protocols.sprinkler.reading import READING
from node.systems import default_declaration
from tests.bench.rows import Row, row
from tests.bench.traffic import PORT, Flow, events, write_capture

CLIENTS, STREAMS = 8, 4
BACKLOG_ROUNDS, BACKLOG_PARTS = 12_000, 30
SECOND_ROUNDS, SECONDS = 200, 30
"""200 batches a second of each stream: 80,000 events/s at each client."""
FIRST = 1_700_000_000


def measure() -> list[Row]:
    """Make captures, measure, delete them. Needs 1 GB below the temporary directory."""
    with tempfile.TemporaryDirectory(prefix="cutset-bench-") as name:
        folder = Path(name)
        began, used = time.perf_counter(), _processor_s()
        spark = spark_session(MASTER, SESSION)
        warm_up(spark, folder / "warm", PORT)
        reading = _Reading(spark, folder / "work")
        rows = [
            row("start, until the run may begin", time.perf_counter() - began, "s"),
            row("start, processor time", _processor_s() - used, "s"),
        ]
        rows += _backlog(reading, folder)
        rows += _delay(reading, folder)
        reading.query.stop()
        spark.stop()
    return rows


class _Reading:
    """The view's query and decoder over a folder of captures that is empty at first."""

    def __init__(self, spark: Any, work: Path) -> None:
        self.captures = work / "captures"
        self.captures.mkdir(parents=True)
        names = [f"client-{number}.pcap" for number in range(CLIENTS)]
        self.folders = [capture_parts.folder_of(self.captures / name) for name in names]
        hosts = {
            capture_parts.capture_of(folder).stem: Host(
                f"r0-client-{number}", "r0", "client", f"10.0.0.{4 + number}", (1000, 1000)
            )
            for number, folder in enumerate(self.folders)
        }
        self._decoder = LiveDecoder(self.captures, hosts, CODEC, default_declaration(), READING)
        self.events = 0
        self.query = LiveQuery(spark, self.captures, PORT, work=work, take=self._take, trigger_s=0)
        self.query.catch_up()

    def _take(self, rows: pa.Table) -> None:
        self.events += sum(batch.events for batch in self._decoder.feed(rows))


def _backlog(reading: _Reading, folder: Path) -> list[Row]:
    """All parts of all clients are there at once."""
    made = [
        _cut(folder, number, BACKLOG_ROUNDS, BACKLOG_PARTS, folder / "made" / target.name)
        for number, target in enumerate(reading.folders)
    ]
    parts = [part for each in made for part in capture_parts.parts(each)[:-1]]
    size = sum(part.stat().st_size for part in parts)
    began, used = time.perf_counter(), _processor_s()
    for each, target in zip(made, reading.folders, strict=True):
        each.rename(target)
    reading.query.catch_up()
    seconds, used = time.perf_counter() - began, _processor_s() - used
    wanted = CLIENTS * STREAMS * 100 * BACKLOG_ROUNDS * (BACKLOG_PARTS - 1) // BACKLOG_PARTS
    if not 0.95 * wanted < reading.events <= wanted:
        raise AssertionError(f"{reading.events} events of {wanted}")
    return [
        row(f"parts of {size / 1e6:.0f} MB", size / seconds / 1e6, "MB/s"),
        row("the same, events", reading.events / seconds / 1e6, "M events/s"),
        row("the same, processor time", used, "s"),
    ]


def _delay(reading: _Reading, folder: Path) -> list[Row]:
    """Close a second's parts of all clients repeatedly and measure the delay."""
    made = [
        _cut(folder, number, SECOND_ROUNDS * (SECONDS + 1), SECONDS + 1, folder / "more" / target.name)
        for number, target in enumerate(reading.folders)
    ]
    seconds, used = [], _processor_s()
    for after, turn in enumerate(zip(*map(capture_parts.parts, made), strict=True), BACKLOG_PARTS):
        for part, target in zip(turn, reading.folders, strict=True):
            part.rename(target / f"{FIRST + after}.pcap")
        began = time.perf_counter()
        reading.query.catch_up()
        seconds.append(time.perf_counter() - began)
    return [
        row("from closed parts to events", statistics.median(seconds) * 1e3, "ms"),
        row("the same, slowest", max(seconds) * 1e3, "ms"),
        row("processor time for a second's parts", (_processor_s() - used) / SECONDS * 1e3, "ms"),
    ]


def _cut(folder: Path, number: int, rounds: int, count: int, target: Path) -> Path:
    """Write a client's capture in this many parts."""
    capture = folder / "whole.pcap"
    flows = [
        Flow("10.0.0.2", PORT, f"10.0.0.{4 + number}", 41_000 + stream, events(stream, 100, 10))
        for stream in range(STREAMS)
    ]
    write_capture(capture, flows, rounds)
    target.mkdir(parents=True)
    for part, content in enumerate(_pieces(capture, count)):
        (target / f"{FIRST + part}.pcap").write_bytes(content)
    capture.unlink()
    return target


def _pieces(capture: Path, count: int) -> Iterator[bytes]:
    data, [form] = map_bytes(capture), build_index(capture).sections
    offsets, end = walk(data, FILE_HEADER_BYTES, data.size, form)
    bounds = [*(int(offsets[offsets.size * piece // count]) for piece in range(count)), end]
    for first, following in pairwise(bounds):
        yield data[:FILE_HEADER_BYTES].tobytes() + data[first:following].tobytes()


def _processor_s() -> float:
    """Processor time of this process and of all below it, also of those that ended."""
    here = psutil.Process()
    found = 0.0
    for process in (here, *here.children(recursive=True)):
        with_children = process.cpu_times()
        found += with_children.user + with_children.system
        if process.pid != here.pid:
            found += with_children.children_user + with_children.children_system
    return found
