"""The streaming query: about every second, the packets of closed parts are decoded on the driver.

The rows are those of the format `pcap`. Spark plans the parts of a batch, and its tasks read the packets'
fields; `foreachBatch` receives them, where the decoder keeps its state. The query is never resumed by another
process, so its checkpoint is temporary; it only serves to repeat a failed start. Spark gives the Python
process that plans a query ten seconds to start, without an option for more, and a busy machine can exceed
that.

Spark and its query run in a separate thread, since Java needs seconds to start. A warm-up query over parts
without packets precedes the run's query, so that Java and Python load and compile their code before the run
needs the CPUs.
"""

import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from analysis.capture.pcap.files import source
from analysis.errors import AnalysisError
from analysis.live.decoder import ROWS
from analysis.live.reading import LiveReading
from analysis.schemas import spark_schema
from analysis.session import spark_session
from experiments.records import capture_parts
from experiments.records.rundir import RunDirectory

TRIGGER_S = 1
PARTS = f"*{capture_parts.SUFFIX}"
"""The watched captures. The other captures are read after the run."""
SESSION = {
    "spark.driver.memory": "768m",
    "spark.python.daemon.module": "analysis.live.daemon",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.numRecentProgressUpdates": "1",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
MASTER = "local[1]"
"""One task at a time: the run needs the CPUs."""
TOO_SLOW = "Python worker failed to connect back"
STARTS_MAX = 10
LOOK_S = 0.5
NO_PACKETS = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1)
"""A classic pcap file without packets."""
WARMING_PARTS = 1


class LiveQuery:
    """A query that runs from its construction until `stop`. It passes each batch's rows to `take`, in another
    thread.
    """

    def __init__(
        self,
        spark: SparkSession,
        captures: Path,
        port: int,
        *,
        work: Path,
        take: Callable[[pa.Table], None],
        trigger_s: int = TRIGGER_S,
    ) -> None:
        source.register(spark)
        self._ended = work / "ended"
        frame = (
            spark.readStream.format("pcap")
            .schema(spark_schema(ROWS))
            .option(source.SEGMENTS, str(port))
            .option(source.ENDED, str(self._ended))
            # Parts are joined after the run, and its analysis reports damaged ones.
            .option(source.IGNORE_MISSING, "true")
            .option(source.IGNORE_CORRUPT, "true")
            .load(str(captures / PARTS))
        )

        def handle(batch: DataFrame, _number: int) -> None:
            take(batch.toArrow())

        self._writer = (
            frame.writeStream.foreachBatch(handle)
            .option("checkpointLocation", str(work / "checkpoint"))
            .trigger(processingTime=f"{trigger_s} seconds")
        )
        self._starts = 0
        self._query = self._start()

    @property
    def failure(self) -> str | None:
        """The error that ended the query. A start that timed out is repeated instead."""
        error = self._query.exception()
        if error is None or self._starts_again(error):
            return None
        return _last_line(str(error))

    def catch_up(self) -> None:
        """Read all parts closed so far. Raises AnalysisError if the query failed."""
        while True:
            try:
                self._query.processAllAvailable()
            except PySparkException as error:
                if not self._starts_again(error):
                    raise AnalysisError(_last_line(str(error))) from error
            else:
                return

    def read_rest(self) -> None:
        """Read the last parts, after captures have ended. Raises AnalysisError if the query failed."""
        self._ended.touch()
        self.catch_up()

    def stop(self) -> None:
        """End the query."""
        self._query.stop()

    def _start(self) -> StreamingQuery:
        self._starts += 1
        return self._writer.start()

    def _starts_again(self, error: PySparkException) -> bool:
        if TOO_SLOW not in str(error) or self._starts == STARTS_MAX:
            return False
        self._query = self._start()
        return True


def _last_line(text: str) -> str:
    """Return a worker's error from Spark's message: the last such line before Java's own trace."""
    lines = [line.strip() for line in text.splitlines() if "Error: " in line or "Exception: " in line]
    return lines[-1] if lines else text.strip().partition("\n")[0]


class LiveRead(LiveReading):
    """One live query of packets, with its own Spark session."""

    def __init__(
        self,
        run: RunDirectory,
        take: Callable[[pa.Table], None],
        work: Path,
        *,
        on_ready: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        super().__init__(on_ready, on_end)
        self._directory = run
        self._take = take
        self._work = work

    def _run(self) -> None:
        spark = spark_session(MASTER, SESSION)
        port = self._directory.read_run().plan.port or 0
        warm_up(spark, self._work, port)
        reading = LiveQuery(spark, self._directory.captures, port, work=self._work, take=self._take)
        reading.catch_up()  # afterwards the planning process runs
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


def warm_up(spark: SparkSession, work: Path, port: int = 1) -> None:
    """Run a query over parts without packets, so that Java and Python load and compile their code."""
    captures = work / "warming" / "captures"
    folder = capture_parts.folder_of(captures / "none.pcap")
    folder.mkdir(parents=True)
    query = LiveQuery(spark, captures, port, work=captures.parent, take=lambda rows: None)
    for number in range(WARMING_PARTS + 1):  # the last one is not closed
        (folder / f"{number}.pcap").write_bytes(NO_PACKETS)
        if number:
            query.catch_up()
    query.stop()
