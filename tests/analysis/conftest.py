"""One Spark session for all tests of the analysis, since starting one takes seconds."""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from analysis.session import spark_session

settings.register_profile("untimed", deadline=None)  # machines are shared: no example fails for being slow
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session, set up as the analysis sets it up. Tests that take it are marked `spark`."""
    session = spark_session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()
