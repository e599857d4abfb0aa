"""The view's query: the segments of closed parts, each once and in order, despite failures."""

import sys
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from analysis.errors import AnalysisError
from analysis.live.query import LiveQuery
from tests.analysis.capture.pcap.captures import Record, at_intervals, segment, write_pcap
from tests.analysis.live.parts import FIRST, write_parts

PORT, BEGINNING, PACKETS, PER_PART = 7000, 1000, 12, 3


def records() -> list[Record]:
    return at_intervals(segment(BEGINNING + number * 10, bytes(10)) for number in range(PACKETS))


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    """Return two captures in parts of three packets."""
    for name in ("a.pcap", "b.pcap"):
        write_parts(tmp_path / name, records(), range(PER_PART, PACKETS, PER_PART))
    return tmp_path


def sequence_numbers(rows: pa.Table, capture: str) -> list[int]:
    return [row["seq"] for row in rows.to_pylist() if row["capture"] == capture]


@pytest.mark.spark
def test_a_query_gives_every_segment_once_and_in_order_as_parts_are_closed(
    spark: SparkSession, captures: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    taken: list[pa.Table] = []
    work = tmp_path_factory.mktemp("work")
    running = LiveQuery(spark, captures, PORT, work=work, take=taken.append, trigger_s=0)
    try:
        running.catch_up()
        expected = [BEGINNING + number * 10 for number in range(PACKETS)]
        for capture in ("a", "b"):
            assert sequence_numbers(pa.concat_tables(taken), capture) == expected[:-PER_PART]
        more = at_intervals([segment(BEGINNING + PACKETS * 10, bytes(10))])
        write_pcap(captures / "a.pcap.parts" / f"{FIRST + 9}.pcap", more)
        running.catch_up()
        assert sequence_numbers(pa.concat_tables(taken), "a") == expected
        running.read_rest()
        assert sequence_numbers(pa.concat_tables(taken), "a") == [
            *expected,
            BEGINNING + PACKETS * 10,
        ]
        assert sequence_numbers(pa.concat_tables(taken), "b") == expected
        assert running.failure is None
    finally:
        running.stop()


SLOW_ONCE = """#!/bin/sh
if expr "$*" : ".*streaming_source_runner" > {marker}.asked && mkdir {marker} 2> {marker}.refused; then
    exec sleep 12
fi
exec {python} "$@"
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_query_restarts_if_its_python_process_starts_too_slowly(
    spark: SparkSession,
    captures: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark waits ten seconds for it, even on a busy machine."""
    work = tmp_path_factory.mktemp("work")
    slow, marker = work / "python", work / "slow"
    slow.write_text(SLOW_ONCE.format(marker=marker, python=sys.executable))
    slow.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(slow))
    taken: list[pa.Table] = []
    running = LiveQuery(spark, captures, PORT, work=work, take=taken.append, trigger_s=0)
    try:
        running.catch_up()
        assert marker.is_dir()
        assert running.failure is None
        found = sequence_numbers(pa.concat_tables(taken), "a")
        assert found == [BEGINNING + number * 10 for number in range(PACKETS - PER_PART)]
    finally:
        running.stop()


@pytest.mark.spark
def test_errors_of_the_listener_are_reported_and_end_the_query(
    spark: SparkSession, captures: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    numbers = count()

    def fail(_rows: pa.Table) -> None:
        next(numbers)
        raise ValueError("no room on the board")

    running = LiveQuery(spark, captures, PORT, work=tmp_path_factory.mktemp("work"), take=fail, trigger_s=0)
    try:
        with pytest.raises(AnalysisError, match="no room on the board"):
            running.catch_up()
        assert "no room on the board" in str(running.failure)
        assert next(numbers) == 1
    finally:
        running.stop()
