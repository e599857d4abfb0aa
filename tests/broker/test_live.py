"""The live view shows what the analysis finds afterwards, for every kind of audience."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from analysis.live.audience import RequiredDeliveries
from analysis.live.timelines import EventBatch, LiveTimelines
from analysis.timelines.delivery.delivery_records import read_files, read_rows
from analysis.timelines.liveness import planned_presence
from analysis.timelines.measures import read_measures
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory
from node.core.deliveries import RecordKind, encode_file_header
from node.core.machine import Measure
from node.core.measures import Columns
from node.systems import build_machine

MS = 1_000_000
PERCENTILES = ("p50_ms", "p95_ms", "p99_ms")


def batches_of(run: RunDirectory, record: RunRecord) -> list[EventBatch]:
    """Return the publications and deliveries in order of time."""
    kinds = {int(RecordKind.PUBLISHED): True, int(RecordKind.DELIVERED): False}
    found = [
        EventBatch(
            kinds[row["kind"]], row["host"], row["stream"],
            row["first_seq"], row["count"], row["count"], row["t_ns"],
        )
        for process in record.plan.processes
        for row in read_files([(process.host, run.host_deliveries(process.host))]).to_pylist()
        if row["kind"] in kinds
    ]  # fmt: skip
    return sorted(found, key=lambda batch: batch.t_ns)


def measures_of(run: RunDirectory, host: str) -> list[tuple[int, Measure]]:
    """Return the measurements of a host's process in order of time."""
    found = [
        (at, Measure(name, dict(zip(names, row, strict=True))))
        for name, blocks in read_measures(host, run.host_measures(host)).items()
        for names, times, cells in blocks
        for at, row in zip(times.tolist(), cells.T.tolist(), strict=True)
    ]
    return sorted(found, key=lambda each: each[0])


class Watched:
    """A run at some time: of its files stands there what was written until then."""

    def __init__(self, run: RunDirectory, folder: Path) -> None:
        self.run, self.now = run, RunDirectory(folder)
        self.now.make()
        self.record = run.read_run()
        self.batches = batches_of(run, self.record)
        hosts = [process.host for process in self.record.plan.processes]
        self.recorded = {host: read_rows(run.host_deliveries(host)) for host in hosts}
        self.measured = {host: measures_of(run, host) for host in hosts}
        self.columns = {host: Columns() for host in hosts}
        self.until_ns = 0

    def until(self, t_ns: int) -> RunMetadata:
        """Write what was there at `t_ns`; what is known then."""
        for host, rows in self.recorded.items():
            content = rows[rows["time_ns"] < t_ns].tobytes()
            self.now.host_deliveries(host).write_bytes(encode_file_header() + content)
        for host, measured in self.measured.items():
            new = [each for each in measured if self.until_ns <= each[0] < t_ns]
            with self.now.host_measures(host).open("ab") as file:
                file.write(self.columns[host].encode(new))
        self.until_ns = t_ns
        changes = tuple(each for each in self.record.changes if each.applied_ns < t_ns)
        disturbed = planned_presence(self.record.plan).disturbed
        return replace(read_metadata(replace(self.record, changes=changes)), disturbed=disturbed)


def shown(watched: Watched, every_ns: int) -> tuple[dict, dict]:
    """All bins of throughput and latency, where the run is watched in steps of this length."""
    zero_ns, ended_ns = watched.record.times.zero_ns, watched.record.times.ended_ns
    metadata = watched.until(zero_ns)
    live = LiveTimelines(metadata, RequiredDeliveries(watched.now, metadata))
    found: tuple[dict, dict] = (defaultdict(dict), defaultdict(dict))
    for end in range(zero_ns, ended_ns + 4_000 * MS, every_ns):
        live.metadata = watched.until(end)
        some = [batch for batch in watched.batches if end - every_ns <= batch.t_ns < end]
        news = live.take(some, dict.fromkeys(metadata.clients, end))
        for series, kept in zip((news.throughput, news.latency), found, strict=True):
            for name, rows in series.items():
                kept[name] |= {row[0]: row[1:] for row in rows}
    return found


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("peers.yaml", ()),
        ("brokers.yaml", ("duration=8s", "faults.cut.at=2s", "faults.cut.for=1s")),
        ("exchange.yaml", ("duration=6s", "faults.cut.at=2s")),
    ],
    ids=["all", "topic", "content"],
)
@pytest.mark.slow
def test_bins_are_those_of_the_analysis(
    summary_with, tmp_path: Path, file: str, settings: tuple[str, ...]
) -> None:
    summary_with(file, build_machine, *settings)
    [path] = tmp_path.iterdir()
    run = RunDirectory(path)
    rates, percentiles = shown(Watched(run, tmp_path / "watched"), 700 * MS)
    for row in pq.read_table(run.table("throughput")).to_pylist():
        if row["scope"] == "region":
            assert rates[row["name"]][round(row["start_s"], 3)] == [pytest.approx(row["events_per_s"])]
    expected = pq.read_table(run.table("latency")).to_pylist()
    assert len(expected) > 50
    assert sum(map(len, percentiles.values())) == len(expected)
    for row in expected:
        found = percentiles[row["origin"]][round(row["start_s"], 3)]
        assert found == pytest.approx([row[name] for name in PERCENTILES], abs=0.0006)
