"""The streaming query: every second or so, what closed parts tell is decoded on the driver.

Spark plans which parts a batch takes and has its tasks read the packets' fields; the rows come to
`foreachBatch`, where the decoder keeps its state. The query is never taken up again after its end, so its
checkpoint only lives as long as the process.
"""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from analysis.errors import AnalysisError
from analysis.live.source import FORMAT, PartsSource

TRIGGER_S = 1
SESSION = {
    "spark.driver.memory": "768m",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.numRecentProgressUpdates": "1",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
MASTER = "local[1]"
"""One task at a time: the processors belong to the run."""


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
        tasks: int = 1,
        trigger_s: int = TRIGGER_S,
    ) -> None:
        spark.dataSource.register(PartsSource)
        self._ended = work / "ended"
        frame = (
            spark.readStream.format(FORMAT)
            .option("path", str(captures))
            .option("port", str(port))
            .option("tasks", str(tasks))
            .option("ended", str(self._ended))
            .load()
        )

        def handle(batch: DataFrame, _number: int) -> None:
            take(batch.toArrow())

        self._query: StreamingQuery = (
            frame.writeStream.foreachBatch(handle)
            .option("checkpointLocation", str(work / "checkpoint"))
            .trigger(processingTime=f"{trigger_s} seconds")
            .start()
        )

    @property
    def failure(self) -> str | None:
        """Why the query ended by itself."""
        error = self._query.exception()
        return None if error is None else _last_line(str(error))

    def catch_up(self) -> None:
        """Read all that is closed by now. Raises AnalysisError if the query failed."""
        try:
            self._query.processAllAvailable()
        except PySparkException as error:
            raise AnalysisError(_last_line(str(error))) from error

    def read_rest(self) -> None:
        """Nothing is written any more: read the last parts too. Raises AnalysisError if the query failed."""
        self._ended.touch()
        self.catch_up()

    def stop(self) -> None:
        """End it."""
        self._query.stop()


def _last_line(said: str) -> str:
    """What a worker raised stands last in what Spark says, before Java's own trace."""
    lines = [line.strip() for line in said.splitlines() if "Error: " in line or "Exception: " in line]
    return lines[-1] if lines else said.strip().partition("\n")[0]
