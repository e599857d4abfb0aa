"""The Spark session: one per process, set up for a short start and modest machines.

On this machine's own cores the Java side is told to compile quickly rather than well and to collect garbage in one
thread, since an analysis lasts seconds; with a cluster's master those choices are the cluster's. Nothing is left
in the working directory: Hive is not used, and Spark's folders stand below the temporary directory.
"""

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession

from analysis.errors import AnalysisError

CORES_MAX = 16  # local workers; beyond that the start-up of Python workers outweighs them
DRIVER_MEMORY_SHARE = 4  # the Java heap may take this part of the machine's memory
DRIVER_MEMORY_BYTES_MAX = 4 << 30
ARROW_BATCH_ROWS = 32_768
_JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Djava.net.preferIPv4Stack=true",
    "-Dderby.system.home={temporary}",
)
_CHECKOUT = Path(__file__).resolve().parent.parent


def spark_session(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a Spark session, or take the one that this process has.

    master: a Spark master URL; None uses this machine's cores. settings: further `spark.…` settings, which win.
    May be called in a thread while other work goes on: most of it is waiting for Java. Raises AnalysisError if
    Java cannot be started.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder
    for name, value in (_settings(master) | dict(settings or {})).items():
        builder = builder.config(name, value)
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise AnalysisError(
            f"Spark did not start ({_first_line(error)}); it needs Java 17 (apt-get install openjdk-17-jre-headless)"
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    return session


def _settings(master: str | None) -> dict[str, str]:
    settings = {
        "spark.app.name": "cutset",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_BATCH_ROWS),
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": tempfile.gettempdir(),
    }
    if master is None or master.startswith("local"):
        settings |= _local_settings(master)
    return settings


def _local_settings(master: str | None) -> dict[str, str]:
    cores = max(2, min(os.cpu_count() or 2, CORES_MAX))
    memory = min(psutil.virtual_memory().total // DRIVER_MEMORY_SHARE, DRIVER_MEMORY_BYTES_MAX)
    java = " ".join(_JAVA_OPTIONS).format(temporary=tempfile.gettempdir())
    return {
        "spark.master": master or f"local[{cores}]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": f"{memory >> 20}m",
        "spark.driver.extraJavaOptions": java,
        "spark.sql.shuffle.partitions": str(cores * 2),
        "spark.sql.adaptive.enabled": "true",
        "spark.executorEnv.PYTHONPATH": str(_CHECKOUT),
    }


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
