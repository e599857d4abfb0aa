"""The Spark session: one per process, quiet, and configured for a short start on a modest machine.

On this machine's own cores Java compiles quickly rather than well and collects garbage in one thread, since
an analysis lasts seconds and Java does little of the work. On a cluster those choices are the cluster's.
Nothing is left behind: Hive is not used, and all of Java's files on this machine are in one folder of this
process. The folder is removed with the process or, if the process is killed, at the next start of Spark.
Java's output goes to a file and is shown only if Java does not start.

Other users of this machine can connect to Spark's ports on loopback but not use them: Spark requires a secret
there, as Py4J and PySpark do at theirs. A cluster's authentication is configured by the cluster, in
`spark-defaults.conf` in SPARK_CONF_DIR (docs/security.md).
"""

import atexit
import functools
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psutil
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from analysis.errors import AnalysisError
from analysis.spark_home import archive_options, home
from experiments.child_processes import ending_with_us
from experiments.child_python import SAFE_ENVIRONMENT
from experiments.files.scratch import scratch

CORES_MAX = 16  # local workers; more cost more to start than they save
HEAP_SHARE = 4  # the Java heap may take 1/4 of the machine's memory
HEAP_BYTES_MAX = 4 << 30
HEAP_BYTES_MIN = 1 << 30
ARROW_BATCH_ROWS = 32_768
OUTPUT_TAIL_LINES = 5
START_WAIT_S = 90.0
FOLDER_PREFIX = "cutset-spark-"
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Darrow.enable_unsafe_memory_access=true",  # Spark keeps the bounds; no second check
    "-Darrow.enable_null_check_for_get=false",
)
COMPILED_WELL = JAVA_OPTIONS[1:]
_starting = threading.Lock()
_launcher = ThreadPoolExecutor(1, thread_name_prefix="launcher")
"""Its thread lasts as long as this process, and Java as long as the thread (see `ending_with_us`)."""
_kept = ExitStack()
_CHECKOUT = Path(__file__).resolve().parent.parent


def spark_session(
    master: str | None = None, settings: Mapping[str, str] | None = None, *, lasting: bool = False
) -> SparkSession:
    """Start a Spark session, or return the one that this process has.

    master: a Spark master URL; None uses this machine's cores. settings: further `spark.…` settings, which
    take precedence. lasting: let Java compile well: queries run at twice the speed, but the start takes some
    seconds longer. May be called in a thread while other work continues, since most of it is waiting for
    Java. Raises AnalysisError if Spark does not start.
    """
    values = {"spark.driver.extraJavaOptions": _java_options(COMPILED_WELL)} if lasting else {}
    context = spark_context(master, values | dict(settings or {}))
    with _starting:
        # Share a session that another thread started; Spark calls it active only in that thread.
        running = SparkSession._instantiatedSession
        return SparkSession(context) if running is None or running._sc is not context else running


def spark_context(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkContext:
    """Start Spark without the parts that queries need, or return the context that this process has.

    Takes half as long as `spark_session`; parameters and errors are the same.
    """
    with _starting:
        _forget_if_dead()
        running = SparkContext._active_spark_context
        return _start_quietly(master, settings) if running is None else running


def _forget_if_dead() -> None:
    """Forget a Java process that was killed, e.g. for lack of memory; the next caller starts another."""
    gateway = SparkContext._gateway
    if gateway is None or gateway.proc.poll() is None:
        return
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


@contextmanager
def _interrupts_as_they_are() -> Iterator[None]:
    """Keep this process's SIGINT handler. PySpark's would ask Java, which the same Ctrl-C may have ended, to
    cancel jobs.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def is_not_keyboard_interrupt(record: logging.LogRecord) -> bool:
    """Return whether a log record is about anything but a Ctrl-C.

    If Ctrl-C arrives while Py4J waits for Java, Py4J logs a traceback through the root logger; the exception
    propagates anyway.
    """
    return record.exc_info is None or record.exc_info[0] is not KeyboardInterrupt


def _start_quietly(master: str | None, settings: Mapping[str, str] | None) -> SparkContext:
    # If Java ends with the same Ctrl-C, Py4J's errors are raised here or do not matter.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # logs what it also raises
    logging.getLogger().addFilter(is_not_keyboard_interrupt)
    # PySpark 4.3 warns that it was not tested with pandas 3; the parts used here are covered by our tests.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if _is_local(master):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors may have another Python
    with tempfile.TemporaryFile("w+") as output, _interrupts_as_they_are():
        try:
            return _start(_settings(master) | dict(settings or {}), output)
        except (OSError, PySparkException, Py4JError) as error:
            raise AnalysisError(_explain(error, output)) from error


def _start(settings: Mapping[str, str], output: IO[str]) -> SparkContext:
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    local = _is_local(settings["spark.master"])
    places = {"SPARK_HOME": str(home())} if local else {}
    # Java continues after a context is stopped, with the options of its first start.
    # PySpark makes a folder for Java's first answer, which would stay if this process is killed meanwhile.
    environment = SAFE_ENVIRONMENT | places | {"SPARK_LAUNCHER_OPTS": "-XX:-UsePerfData"}
    with _java_environment(environment), _temporary_in(_folder()), _ended_if_interrupted():
        gateway = SparkContext._gateway or _launch(conf, {"stdout": output, "stderr": output}, local=local)
    if local:
        atexit.register(gateway.proc.kill)
    patience = threading.Timer(START_WAIT_S, gateway.proc.kill)
    if not local:  # a cluster's master may never answer
        patience.start()
    try:
        context = SparkContext(conf=conf, gateway=gateway)
    finally:
        patience.cancel()
    context.setLogLevel("ERROR")
    return context


def _launch(conf: SparkConf, options: dict[str, Any], *, local: bool) -> Any:
    """Start Java. On this machine it is killed when this process ends: a busy one takes seconds to end by
    itself, and one that starts does not notice. A cluster is notified of the end.
    """
    gateway: Any = java_gateway  # untyped
    if not local:
        return gateway.launch_gateway(conf, options)
    ending = ending_with_us()

    def popen(command: Any, *, preexec_fn: Callable[[], None], **more: Any) -> "subprocess.Popen[Any]":
        def in_child() -> None:
            preexec_fn()
            ending()

        return subprocess.Popen(command, preexec_fn=in_child, **more)  # noqa: PLW1509

    gateway.Popen = popen  # PySpark sets a preexec_fn of its own
    return _launcher.submit(gateway.launch_gateway, conf, options).result()


@contextmanager
def _ended_if_interrupted() -> Iterator[None]:
    """End the children that this block has started if it raises: no handle of them is left."""
    before = {child.pid for child in psutil.Process().children()}
    try:
        yield
    except BaseException:
        for child in psutil.Process().children():
            if child.pid not in before:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
        raise


@contextmanager
def _temporary_in(folder: Path) -> Iterator[None]:
    """Let temporary files of the block be made in a folder that ends with this process."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextmanager
def _java_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables in the environment of Java and its children only, not of processes started later."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _settings(master: str | None) -> dict[str, str]:
    settings = {
        "spark.app.name": "cutset",
        "spark.submit.deployMode": "client",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_BATCH_ROWS),
        "spark.sql.python.filterPushdown.enabled": "true",
        **{f"spark.executorEnv.{name}": value for name, value in SAFE_ENVIRONMENT.items()},
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"{_folder()}/warehouse",
        # Spark's own folders follow. spark.local.dir would also apply to executors of a cluster.
        "spark.driver.defaultJavaOptions": f'"-Djava.io.tmpdir={_folder()}"',
    }
    if _is_local(master):
        return settings | _local_settings(master)
    return settings | {"spark.master": str(master), "spark.driver.extraJavaOptions": _java_options()}


@functools.cache
def _folder() -> Path:
    """Create the folder for Java's files on this machine. Raises OSError."""
    atexit.register(_kept.close)
    return _kept.enter_context(scratch(FOLDER_PREFIX, Path(tempfile.gettempdir())))


def _is_local(master: str | None) -> bool:
    return master is None or master.startswith("local")


def _local_settings(master: str | None) -> dict[str, str]:
    cores = max(2, min(os.cpu_count() or 2, CORES_MAX))
    heap = max(HEAP_BYTES_MIN, min(psutil.virtual_memory().total // HEAP_SHARE, HEAP_BYTES_MAX))
    return {
        "spark.master": master or f"local[{cores}]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # Java creates a secret for this session. It stays in Java and appears on no command line.
        "spark.authenticate": "true",
        "spark.driver.memory": f"{heap >> 20}m",
        "spark.driver.extraJavaOptions": _java_options(),
        "spark.sql.shuffle.partitions": str(cores * 2),
        "spark.executorEnv.PYTHONPATH": str(_CHECKOUT),  # workers import our modules from this checkout
        "spark.python.daemon.module": "analysis.jobs.daemon",
    }


def _java_options(options: tuple[str, ...] = JAVA_OPTIONS) -> str:
    return " ".join((*options, *archive_options()))


def _explain(error: Exception, output: IO[str]) -> str:
    output.seek(0)
    tail = " | ".join(line.strip() for line in output.readlines()[-OUTPUT_TAIL_LINES:])
    first = str(error).strip().partition("\n")[0]
    return f"Spark did not start: {tail or first}. It needs Java 17 or later (openjdk-17-jre-headless)"
