"""The reading speed of captures: other tools, Cutset's core on one core, Spark, and a complete run.

The captures are generated and deleted afterwards: one of full-size packets (1483 bytes and their
acknowledgements), one of small ones, one of mixed sizes that all tools read, and a run of the main job's
size. Each figure is the best of a few attempts; the first one warms the page cache and the workers.
"""

import itertools
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dpkt
import pyarrow.parquet as pq
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)
from scapy.layers.inet import IP, TCP
from scapy.utils import PcapReader

from analysis import tables
from analysis.capture.pcap.files.index import build_index, load_index
from analysis.capture.pcap.files.record_batches import read_columns, spans_of
from analysis.capture.pcap.files.source import register
from analysis.capture.time_range import TimeRange
from analysis.jobs.extraction import load_indices
from analysis.jobs.spark import Executors
from analysis.session import spark_session
from experiments.records.rundir import RunDirectory
from tests.bench.rows import Row, row
from tests.bench.traffic import PORT, Flow, events, write_capture, write_run
from tests.run_json import set_run

EVENT_BYTES = 10
FULL, SMALL, MIXED = (140,), (1,), (1, 40, 140, 140)
"""Events in a message of each flow: 140 make a frame of 1483 bytes, 1 one of 93; an acknowledgement each."""
FULL_BYTES, SMALL_BYTES = 2_000_000_000, 500_000_000
PEER_BYTES = 80_000_000
SCAPY_PACKETS = 20_000  # of the same capture: all would take half a minute
RUN_ROUNDS = 18_000
TRIES = 3


def measure() -> list[Row]:
    """Make captures, measure, delete them. Needs 5 GB below the temporary directory."""
    with tempfile.TemporaryDirectory(prefix="cutset-bench-") as name:
        folder = Path(name)
        full, small, mixed = (folder / f"{kind}.pcap" for kind in ("full", "small", "mixed"))
        packets = {
            full: _write(full, FULL, FULL_BYTES),
            small: _write(small, SMALL, SMALL_BYTES),
            mixed: _write(mixed, MIXED, PEER_BYTES),
        }
        rows = [
            *_core("full-size packets", full, packets[full]),
            *_core("small packets", small, packets[small]),
        ]
        began = time.perf_counter()
        spark = spark_session(lasting=True)
        context = spark.sparkContext
        rows.append(row("start of Spark, for queries", time.perf_counter() - began, "s"))
        rows += _to_table(context, "full-size packets", full, packets[full], ("GB/s", 1.3))
        rows += _to_table(context, "small packets", small, packets[small], ("M packets/s", 4))
        rows += _through_format(spark, "full-size packets", full, packets[full], ("GB/s", 1.3))
        rows += _through_format(spark, "small packets", small, packets[small], ("M packets/s", 4))
        rows += _peers(context, mixed, packets[mixed])
        rows += _run(context, folder / "run")
        spark.stop()
    return rows


def _write(path: Path, kinds: Sequence[int], size: int) -> int:
    """Write a capture of about this size; returns its packets."""
    flows = [
        Flow("10.0.0.2", PORT, "10.0.1.2", 40000 + number, events(number, count, EVENT_BYTES))
        for number, count in enumerate(kinds)
    ]
    write_capture(path, flows, 1)
    one_round = path.stat().st_size - 24
    return write_capture(path, flows, size // one_round)


def _best(work: Callable[[], object], tries: int = TRIES) -> float:
    """Seconds of the fastest of some tries."""
    seconds = []
    for _ in range(tries):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def _read_all(path: Path) -> int:
    """Walk a capture's records and take all header fields, on this core."""
    spans = spans_of(path, load_index(path), TimeRange())
    return sum(columns["t_ns"].size for span in spans for columns in read_columns(span))


def _core(kind: str, capture: Path, packets: int) -> list[Row]:
    index_s = _best(lambda: build_index(capture))
    fields_s = _best(lambda: _read_all(capture))
    return [
        row(f"index, {kind}, one core", packets / index_s / 1e6, "M packets/s"),
        row(f"header fields, {kind}, one core", packets / fields_s / 1e6, "M packets/s", 4),
    ]


def _peers(context: SparkContext, capture: Path, packets: int) -> list[Row]:
    """Read the same fields of the same capture with all tools."""
    per_s = {
        "scapy": SCAPY_PACKETS / _best(lambda: _read_with_scapy(capture), 1),
        "dpkt": packets / _best(lambda: _read_with_dpkt(capture), 1),
        "tshark -T fields": packets / _best(lambda: _read_with_tshark(capture), 1),
        "our core, one core": packets / _best(lambda: _read_all(capture)),
        "our Spark path, to Parquet": packets / _extracted_s(context, capture),
    }
    tshark = per_s["tshark -T fields"]
    asked = {"our core, one core": 60}
    what = f"one capture of {packets:,} packets"
    return [
        each
        for name, value in per_s.items()
        for each in (
            row(f"{what}: {name}", value / 1e6, "M packets/s"),
            row(f"{what}: {name}, against tshark", value / tshark, "times", asked.get(name)),
        )
    ]


def _read_with_scapy(capture: Path) -> list[tuple[Any, ...]]:
    found = []
    with PcapReader(str(capture)) as reader:
        for packet in itertools.islice(reader, SCAPY_PACKETS):
            ip, tcp = packet[IP], packet[TCP]
            found.append((packet.time, ip.src, ip.dst, tcp.sport, tcp.dport, tcp.seq, len(tcp.payload)))
    return found


def _read_with_tshark(capture: Path) -> None:
    names = "frame.time_epoch ip.src ip.dst tcp.srcport tcp.dstport tcp.seq_raw tcp.len"
    options = [part for name in names.split() for part in ("-e", name)]
    command = ["tshark", "-n", "-r", str(capture), "-T", "fields", *options]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def _read_with_dpkt(capture: Path) -> list[tuple[Any, ...]]:
    with capture.open("rb") as file:
        found = []
        for time_s, data in dpkt.pcap.Reader(file):
            ip = dpkt.ethernet.Ethernet(data).data
            found.append(
                (time_s, ip.src, ip.dst, ip.data.sport, ip.data.dport, ip.data.seq, len(ip.data.data))
            )
        return found


def _extracted_s(context: SparkContext, capture: Path) -> float:
    """Seconds from a capture to the table of packets, all columns, as `cutset analyze` makes it."""
    run = RunDirectory(capture.parent / f"one-{capture.stem}")
    run.captures.mkdir(parents=True)
    run.capture(capture.name).hardlink_to(capture)
    set_run(run, captures=[{"file": f"captures/{capture.name}"}])
    load_indices(run)
    seconds = _best(lambda: tables.extract(Executors(context), run))
    shutil.rmtree(run.path)
    return seconds


def _speeds(what: str, capture: Path, packets: int, seconds: float, asked: tuple[str, float]) -> list[Row]:
    speeds = {"GB/s": capture.stat().st_size / seconds / 1e9, "M packets/s": packets / seconds / 1e6}
    return [row(what, speed, unit, asked[1] if unit == asked[0] else None) for unit, speed in speeds.items()]


def _to_table(
    context: SparkContext, kind: str, capture: Path, packets: int, asked: tuple[str, float]
) -> list[Row]:
    seconds = _extracted_s(context, capture)
    return _speeds(f"through Spark: {kind} to the table of packets", capture, packets, seconds, asked)


def _through_format(
    spark: SparkSession, kind: str, capture: Path, packets: int, asked: tuple[str, float]
) -> list[Row]:
    register(spark)

    def bin_bytes() -> None:
        rows = spark.read.format("pcap").schema("t_ns bigint, wire_length int").load(str(capture))
        rows.groupBy(F.expr("t_ns div 100000000")).agg(F.sum("wire_length"), F.count("*")).collect()

    what = f"through Spark: format pcap, {kind}, bytes in bins of 100 ms"
    return _speeds(what, capture, packets, _best(bin_bytes, TRIES + 2), asked)


def _run(context: SparkContext, folder: Path) -> list[Row]:
    packets = write_run(folder, RUN_ROUNDS, event_bytes=5)
    run = RunDirectory(folder)
    index_s = _best(lambda: load_indices(run), 1)
    extract_s = _best(lambda: tables.extract(Executors(context), run), 2)
    size = sum(path.stat().st_size for path in run.captures.glob("*.pcap"))
    messages = _rows_of(run.table("messages"))
    what = f"a run of 28 captures ({packets / 1e6:.1f} M packets, {size / 1e9:.1f} GB)"
    return [
        row(f"{what}: index", index_s, "s"),
        row(f"{what}: packets and {messages / 1e6:.1f} M messages to Parquet", extract_s, "s", 12),
    ]


def _rows_of(table: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in table.glob("*.parquet"))
