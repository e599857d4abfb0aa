"""The streaming query: every second or so, what closed parts tell is decoded on the driver.

The rows are those of the format `pcap`: Spark plans which parts a batch takes and has its tasks read the
packets' fields; they come to `foreachBatch`, where the decoder keeps its state. The query is never taken up
again after its end, so its checkpoint only lives as long as the process: a start that failed is made again
from there. Spark gives the Python that plans a query ten seconds to come up and no way to ask for more, which
a busy machine does not always keep.

Spark and its query have a thread of their own, since Java needs seconds to start. A first query over parts
without packets comes before that of the run: what Java and Python load and compile the first time is done
before the run needs the processors.
"""

import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from analysis.capture.pcap.files import source
from analysis.errors import AnalysisError
from analysis.live.decoder import ROWS
from analysis.schemas import spark_schema
from analysis.session import spark_session
from experiments.records import capture_parts
from experiments.records.rundir import RunDirectory

TRIGGER_S = 1
PARTS = f"*{capture_parts.SUFFIX}"
"""What is watched; the other captures of a run are read when it is over."""
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
"""One task at a time: the processors belong to the run."""
TOO_SLOW = "Python worker failed to connect back"
STARTS_MAX = 10
LOOK_S = 0.5
NO_PACKETS = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1)
"""A classic pcap file that holds nothing."""
WARMING_PARTS = 1


class LiveQuery:
    """A query that runs from its making until `stop`. `take` is given the rows of each batch, in a thread of
    its own.
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
            # Parts are joined when the run is over, and what is wrong with them is for its analysis to say.
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
        """Why the query ended by itself, unless it was too slow to start and does so again."""
        error = self._query.exception()
        if error is None or self._starts_again(error):
            return None
        return _last_line(str(error))

    def catch_up(self) -> None:
        """Read all that is closed by now. Raises AnalysisError if the query failed."""
        while True:
            try:
                self._query.processAllAvailable()
            except PySparkException as error:
                if not self._starts_again(error):
                    raise AnalysisError(_last_line(str(error))) from error
            else:
                return

    def read_rest(self) -> None:
        """Nothing is written any more: read the last parts too. Raises AnalysisError if the query failed."""
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


def _last_line(said: str) -> str:
    """What a worker raised stands last in what Spark says, before Java's own trace."""
    lines = [line.strip() for line in said.splitlines() if "Error: " in line or "Exception: " in line]
    return lines[-1] if lines else said.strip().partition("\n")[0]


class LiveRead:
    """One live query. `failure` says why it cannot go on; `ended`, that there is nothing more to read."""

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
        port = self._run.read_run().plan.port or 0
        warm_up(spark, self._work, port)
        reading = LiveQuery(spark, self._run.captures, port, work=self._work, take=self._take)
        reading.catch_up()  # what plans it runs from here on
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
    """Have Java and Python load and compile what a first query needs, with parts that hold no packets."""
    captures = work / "warming" / "captures"
    folder = capture_parts.folder_of(captures / "none.pcap")
    folder.mkdir(parents=True)
    query = LiveQuery(spark, captures, port, work=captures.parent, take=lambda rows: None)
    for number in range(WARMING_PARTS + 1):  # the last one is not closed
        (folder / f"{number}.pcap").write_bytes(NO_PACKETS)
        if number:
            query.catch_up()
    query.stop()
