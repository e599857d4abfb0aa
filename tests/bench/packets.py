"""How fast captures are read: header fields without Spark, the format `pcap` in Spark, and a whole run.

The captures are made for it (2 GB of mixed sizes; a run of the main job's size), and deleted afterwards. Each
figure is the best of a few tries, the first of which warms the page cache and the workers.
"""

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpkt
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)

from analysis import tables
from analysis.extraction import load_indices
from analysis.pcap.batches import TimeRange, read_columns, spans_of
from analysis.pcap.index import build_index, load_index
from analysis.pcap.source import register
from analysis.session import spark_session
from analysis.workers.spark import Executors
from experiments.rundir import RunDirectory
from tests.bench.traffic import PORT, Flow, events, write_capture, write_run

CAPTURE_BYTES = 2_000_000_000
EVENTS_PER_MESSAGE = (
    1,
    40,
    140,
    140,
)  # of 10 bytes: frames of 93 to 1483 bytes, an acknowledgement after each
PEER_PACKETS = 100_000
RUN_ROUNDS = 18_000
TRIES = 3

Row = dict[str, Any]


def measure() -> list[Row]:
    """Make captures, measure, delete them. Needs 4 GB below the temporary directory."""
    with tempfile.TemporaryDirectory(prefix="cutset-bench-") as folder:
        capture = Path(folder) / "mixed.pcap"
        packets = _write_mixed(capture, CAPTURE_BYTES)
        rows = [*_core(capture, packets), *_peers(Path(folder))]
        began = time.perf_counter()
        spark = spark_session()
        rows.append(_row("start of Spark", time.perf_counter() - began, "s"))
        rows += _through_spark(spark, capture, packets)
        capture.unlink()
        rows += _run(spark, Path(folder) / "run")
        spark.stop()
    return rows


def _write_mixed(path: Path, size: int) -> int:
    flows = [
        Flow("10.0.0.2", PORT, "10.0.1.2", 40000 + number, events(number, count, 10), number % 2 == 0)
        for number, count in enumerate(EVENTS_PER_MESSAGE)
    ]
    write_capture(path, flows, 1)
    one_round = path.stat().st_size - 24
    return write_capture(path, flows, size // one_round)


def _row(name: str, value: float, unit: str, asked: float | str | None = None) -> Row:
    return {"name": name, "value": value, "unit": unit, "asked": asked}


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


def _core(capture: Path, packets: int) -> list[Row]:
    index_s = _best(lambda: build_index(capture))
    fields_s = _best(lambda: _read_all(capture))
    return [
        _row("index of a 2 GB capture, one core", packets / index_s / 1e6, "M packets/s"),
        _row("header fields, one core", packets / fields_s / 1e6, "M packets/s", 4),
    ]


def _peers(folder: Path) -> list[Row]:
    """The same fields of the same small capture by tshark and dpkt."""
    capture = folder / "small.pcap"
    packets = _write_mixed(capture, PEER_PACKETS * 789)
    ours = _best(lambda: _read_all(capture))
    tshark = _best(lambda: _read_with_tshark(capture), 1)
    others = _best(lambda: _read_with_dpkt(capture), 1)
    return [
        _row(f"header fields of {packets:,} packets, against tshark -T fields", tshark / ours, "times", 60),
        _row(f"header fields of {packets:,} packets, against dpkt", others / ours, "times"),
    ]


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


def _through_spark(spark: SparkSession, capture: Path, packets: int) -> list[Row]:
    register(spark)
    size = capture.stat().st_size

    def bin_bytes() -> None:
        rows = spark.read.format("pcap").schema("t_ns bigint, wire_length int").load(str(capture))
        rows.groupBy(F.expr("t_ns div 100000000")).agg(F.sum("wire_length"), F.count("*")).collect()

    run = RunDirectory(capture.parent / "one")
    run.captures.mkdir(parents=True)
    run.capture("mixed.pcap").hardlink_to(capture)
    run.update_run(captures=[{"file": "captures/mixed.pcap"}])
    load_indices(run)
    table_s, binned_s = _best(lambda: tables.extract(Executors(spark.sparkContext), run)), _best(bin_bytes)
    run.capture("mixed.pcap").unlink()
    return [
        _row("through Spark: a 2 GB capture to the table of packets", size / table_s / 1e9, "GB/s", 1),
        _row("the same", packets / table_s / 1e6, "M packets/s"),
        _row("through Spark: format pcap, bytes in bins of 100 ms", size / binned_s / 1e9, "GB/s", 1),
    ]


def _run(spark: SparkSession, folder: Path) -> list[Row]:
    packets = write_run(folder, RUN_ROUNDS, event_bytes=5)
    run = RunDirectory(folder)
    index_s = _best(lambda: load_indices(run), 1)
    extract_s = _best(lambda: tables.extract(Executors(spark.sparkContext), run), 2)
    size = sum(path.stat().st_size for path in run.captures.glob("*.pcap"))
    messages = tables.messages(spark, run).count()
    what = f"a run of 28 captures ({packets / 1e6:.1f} M packets, {size / 1e9:.1f} GB)"
    return [
        _row(f"{what}: index", index_s, "s"),
        _row(f"{what}: packets and {messages / 1e6:.1f} M messages to Parquet", extract_s, "s", 12),
    ]
