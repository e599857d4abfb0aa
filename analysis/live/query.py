"""The streaming query: every second or so, what closed parts tell is decoded on the driver.

Spark plans which parts a batch takes and has its tasks read the packets' fields; the rows come to
`foreachBatch`, where the decoder keeps its state. The query is never taken up again after its end, so its
checkpoint only lives as long as the process: a start that failed is made again from there. Spark gives the
Python that plans a query ten seconds to come up and no way to ask for more, which a busy machine does not
always keep.
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
TOO_SLOW = "Python worker failed to connect back"
STARTS_MAX = 10


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
        """End it."""
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
