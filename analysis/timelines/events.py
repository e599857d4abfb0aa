"""The events table: which batch was published, arrived or was sent where and when. Pure Spark steps.

From messages: an EVENTS that a host took whole has *arrived*, one that left it whole was *sent*; a PUBLISH
that arrived whole at a proxy is *published* at that time under the sequence numbers that the proxy's answer,
PUBLISHED, gives it. A repeated PUBLISH counts when it first came. A driver that starts again numbers its
requests from 1 again, so a PUBLISH belongs to the first answer after it.

From records: where there are no captures, what clients and drivers wrote down stands in. Then "published" is
when the driver had the answer, "arrived" when the client had the events, and nothing is known of proxies.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)

from analysis.timelines import schemas
from analysis.timelines.facts import Facts

DELIVERED, PUBLISHED, TOMBSTONE = 0, 1, 3  # node.core.deliveries.RecordKind
COLUMNS = tuple(schemas.EVENTS.names)


def from_messages(messages: DataFrame, facts: Facts) -> DataFrame:
    """Rows of `schemas.EVENTS` from rows of `analysis.schemas.MESSAGES`."""
    hosts = _hosts(messages, facts)
    placed = messages.join(F.broadcast(hosts.select("host", "region", "role")), "host", "inner")
    peers = hosts.select(F.col("host").alias("peer"), F.col("address").alias("peer_address"))
    away = F.when(F.col("direction") == "in", F.col("src")).otherwise(F.col("dst"))
    named = placed.withColumn("peer_address", away).join(F.broadcast(peers), "peer_address", "left")
    return _moved(named).unionByName(_published(named))


def from_records(records: DataFrame, facts: Facts) -> DataFrame:
    """Rows of `schemas.EVENTS` from rows of `schemas.RECORDS`."""
    placed = records.join(F.broadcast(_hosts(records, facts).drop("address")), "host", "inner")
    taken = placed.where(F.col("kind").isin(DELIVERED, PUBLISHED, TOMBSTONE))
    size = F.lit(facts.event_bytes).cast("bigint")
    return (
        taken.withColumn("kind", F.when(F.col("kind") == PUBLISHED, "published").otherwise("arrived"))
        .withColumn("peer", F.lit(None).cast("string"))
        .withColumn("bytes", F.col("count") * size)
        .select(*COLUMNS)
    )


def _hosts(any_frame: DataFrame, facts: Facts) -> DataFrame:
    rows = [(host.name, host.region, host.role, host.address) for host in facts.hosts.values()]
    return any_frame.sparkSession.createDataFrame(
        rows, "host string, region string, role string, address string"
    )


def _moved(named: DataFrame) -> DataFrame:
    """EVENTS that arrived or were sent."""
    return (
        named.where(F.col("type") == "EVENTS")
        .withColumn("kind", F.when(F.col("direction") == "in", "arrived").otherwise("sent"))
        .withColumn("t_ns", F.col("t_complete_ns"))
        .withColumn("bytes", F.col("payload_length").cast("bigint"))
        .select(*COLUMNS)
    )


def _published(named: DataFrame) -> DataFrame:
    """PUBLISH with the sequence numbers of the first PUBLISHED after it."""
    asked = (F.col("type") == "PUBLISH") & (F.col("direction") == "in")
    answered = (F.col("type") == "PUBLISHED") & (F.col("direction") == "out")
    of_one_request = Window.partitionBy("host", "peer_address", "stream", "request").orderBy(
        "t_complete_ns", answered
    )
    onwards = of_one_request.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    answer = F.first(F.when(answered, F.col("first_seq")), ignorenulls=True).over(onwards)
    numbered = (
        named.where((F.col("role") == "proxy") & (asked | answered))
        .withColumn("answer", answer)
        .where(asked & F.col("answer").isNotNull())
    )
    return (
        numbered.groupBy("host", "region", "role", "peer", "stream", F.col("answer").alias("first_seq"))
        .agg(
            F.first("count").alias("count"),
            F.min("t_complete_ns").alias("t_ns"),
            F.first("payload_length").cast("bigint").alias("bytes"),
        )
        .withColumn("kind", F.lit("published"))
        .select(*COLUMNS)
    )
