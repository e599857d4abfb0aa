"""One Spark session for all tests of the analysis, since starting one takes seconds."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from analysis.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Yield a local session with the analysis's settings. Tests that use it are marked `spark`."""
    session = spark_session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()
