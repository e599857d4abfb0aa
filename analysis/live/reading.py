"""Spark and its query in a thread of their own, since Java needs seconds to start.

A first query over parts without packets comes before that of the run: what Java and Python load and compile
the first time is done before the run needs the processors.
"""

import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from analysis.errors import AnalysisError
from analysis.live.query import MASTER, SESSION, LiveQuery
from analysis.session import spark_session
from experiments import capture_parts
from experiments.rundir import RunDirectory

LOOK_S = 0.5
NO_PACKETS = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1)
"""A classic pcap file that holds nothing."""
WARMING_PARTS = 2


class Reading:
    """`failure` says why nothing more will come; `ended` that nothing more is to come."""

    def __init__(
        self,
        run: RunDirectory,
        take: Callable[[pa.Table], None],
        work: Path,
        *,
        on_ready: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self.failure: str | None = None
        self.ended = False
        self._run = run
        self._take = take
        self._work = work
        self._on_ready = on_ready
        self._on_end = on_end
        self._captured = threading.Event()
        self._thread = threading.Thread(target=self._go, name="spark", daemon=True)

    def start(self) -> None:
        """Start Spark, call `on_ready`, then read until `finish`."""
        self._thread.start()

    def finish(self) -> None:
        """Nothing is written any more: read what is left, then let Spark go. Returns at once."""
        self._captured.set()

    def _go(self) -> None:
        try:
            self._read()
        except AnalysisError as error:
            self.failure = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run goes on and one line says so
            self.failure = f"{type(error).__name__}: {error}".partition("\n")[0]

    def _read(self) -> None:
        spark = spark_session(MASTER, SESSION)
        port = self._run.read_run()["plan"]["parameters"]["port"]
        self._warm_up(spark, port)
        reading = LiveQuery(spark, self._run.captures, port, work=self._work, take=self._take)
        self._on_ready()
        while not self._captured.wait(LOOK_S):
            self.failure = reading.failure
            if self.failure is not None:
                return
        reading.read_rest()
        self.ended = True
        self._on_end()
        reading.stop()
        spark.stop()

    def _warm_up(self, spark: SparkSession, port: int) -> None:
        captures = self._work / "warming" / "captures"
        folder = capture_parts.folder_of(captures / "none.pcap")
        folder.mkdir(parents=True)
        query = LiveQuery(spark, captures, port, work=captures.parent, take=lambda rows: None)
        for number in range(WARMING_PARTS + 1):  # the last one is not closed
            (folder / f"{number}.pcap").write_bytes(NO_PACKETS)
            if number:
                query.catch_up()
        query.stop()
