"""A cluster's executors as workers: reached, given our modules, asked what they see, and left clean.

Whether they see the run's files where this process sees them is asked of each executor: a token that it
reads and a file that it writes tell. If all do, they work on the files themselves; if not, files are sent
(`analysis.jobs.sending`). Spark is stopped at the end, however it ends: what was sent is gone then, and
the cluster is free for others.

The job brings along our own modules as a zip file, of the packages that tasks are made of; NumPy and PyArrow
the executors have.
"""

import secrets
import shutil
import socket
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from pyspark import SparkContext

from analysis.errors import AnalysisError
from analysis.jobs.probe import ProbeAnswer, ProbeQuestion, look
from analysis.jobs.sending import RemoteWorkers
from analysis.jobs.spark import Executors, collected
from analysis.jobs.work import Workers
from analysis.session import JAVA_OPTIONS, spark_context
from experiments.files.scratch import scratch
from experiments.files.whole_files import remove
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

MODULES = "cutset.zip"
SHARED, SEND = "shared", "send"
SCHEME = "spark://"
CONNECT_WAIT_S = 5.0
EXECUTORS_WAIT_S = 60.0
SETTLED_S = 2.0
"""Executors come one after the other: when none has come for so long, and for as long as the first one took,
all have. Machines that are slow to start the first are as slow with the others.
"""
_POLL_S = 0.1


class Cluster:
    """A cluster, from the first run that its executors work on until the end of the block."""

    def __init__(self, master: str, captures: str | None) -> None:
        """captures: SHARED, SEND, or None to find out for each run."""
        self._master = master
        self._captures = captures
        self._context: SparkContext | None = None
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def context(self, progress: Callable[[str], None], modules: Callable[[Path], Path]) -> SparkContext:
        """Its context, for other jobs than analyses. modules: writes the zip file that executors get.

        Raises as `workers_for`.
        """
        return self._connected(progress, modules)

    @contextmanager
    def workers_for(self, run: RunDirectory, progress: Callable[[str], None]) -> Iterator[Workers]:
        """Raises InputError for what is no master's URL, AnalysisError if there is no such cluster or its
        executors cannot do the work.
        """
        context = self._connected(progress, write_modules)
        number = _number_of_executors(context)
        seen = _sees(context, run)
        if self._captures == SHARED and not seen:
            raise AnalysisError(
                f"{run.path}: not all executors of {self._master} can read and write there; "
                "put the run where all see it under this path, or have it sent: --captures send"
            )
        if seen and self._captures != SEND:
            progress(f"{number} executors work on the run where it is")
            yield Executors(context)
        else:
            progress(f"sending the run's files to {number} executors")
            with RemoteWorkers(context, run) as workers:
                yield workers

    def _connected(self, progress: Callable[[str], None], modules: Callable[[Path], Path]) -> SparkContext:
        if self._context is None:
            settings = _settings(self._master)
            progress(f"starting Spark on {self._master}")
            with ExitStack() as stack:
                context = spark_context(self._master, settings)
                stack.callback(context.stop)
                folder = stack.enter_context(scratch("cutset-modules-", Path(tempfile.gettempdir())))
                context.addPyFile(str(modules(folder / MODULES)))
                _wait_for_executors(context, self._master)
                self._open = stack.pop_all()
            self._context = context
        return self._context


def _settings(master: str) -> dict[str, str]:
    """Settings for this master: Spark's end over here listens where the way to the master begins."""
    settings = {
        "spark.files.useFetchCache": "false",  # a second copy of what is sent
        "spark.executor.extraJavaOptions": " ".join(JAVA_OPTIONS),  # little is done in Java there, too
    }
    if not master.startswith(SCHEME):
        return settings
    here = _address_towards(master)
    return settings | {"spark.driver.host": here, "spark.driver.bindAddress": here}


def _address_towards(master: str) -> str:
    """Our address on the way to the master. Raises AnalysisError if nothing answers there."""
    problems = []
    for place in master.removeprefix(SCHEME).split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdigit():
            raise InputError(master, None, "", "is no master: it should read spark://HOST:PORT")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_WAIT_S) as connection:
                return str(connection.getsockname()[0])
        except (OSError, OverflowError) as error:
            problems.append(str(error))
    raise AnalysisError(
        f"{master} cannot be reached: {'; '.join(problems)}. Is the master running, and is this its address?"
    )


def _wait_for_executors(context: SparkContext, master: str) -> int:
    """Wait until the cluster gave us executors; returns how many."""
    began = changed = time.monotonic()  # Spark itself asked for them just before
    number = 0
    settled_s = SETTLED_S
    while True:
        now, before = time.monotonic(), number
        number = _number_of_executors(context)
        if number != before:
            changed = now
            settled_s = settled_s if before else max(SETTLED_S, now - began)
        if number and now - changed >= settled_s:
            return number
        if not number and now - began >= EXECUTORS_WAIT_S:
            raise AnalysisError(
                f"{master} gave no executor within {EXECUTORS_WAIT_S:g} s: "
                "are its workers alive, with cores and memory to spare, and can they connect to this machine?"
            )
        time.sleep(_POLL_S)


def _number_of_executors(context: SparkContext) -> int:
    return len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1  # without this process's own


def _sees(context: SparkContext, run: RunDirectory) -> bool:
    """Whether all executors read and write the run where it is. Raises AnalysisError if one cannot work."""
    folder = run.table_in_the_making("seen")
    remove(folder)  # of an analysis that was killed
    folder.mkdir(parents=True)
    try:
        sizes = {path: path.stat().st_size for path in run.captures.glob("*") if path.is_file()}
        question = ProbeQuestion(folder, secrets.token_hex(), sizes)
        question.note.write_text(question.token)
        slots = context.defaultParallelism  # Spark fills all at once, so each executor is asked
        sights = collected(
            context.parallelize([question] * slots, slots).map(look), "asking executors what they see"
        )
        check(sights)
        return all(_is_one_of_us(sight, folder) for sight in sights)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check(sights: Sequence[ProbeAnswer]) -> None:
    """Raises AnalysisError if an executor lacks what tasks need."""
    for sight in sights:
        if sight.missing:
            missing = " and no ".join(sight.missing)
            raise AnalysisError(
                f"executors on {sight.host} run {sight.python}, which has no {missing}: "
                "install them there, or set PYSPARK_PYTHON to a Python of theirs that has them"
            )


def _is_one_of_us(sight: ProbeAnswer, folder: Path) -> bool:
    return sight.reads and sight.written is not None and (folder / sight.written).exists()


CHECKOUT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("analysis", "experiments", "node", "systems", "topologies")


def write_modules(path: Path, packages: Sequence[str] = PACKAGES, endings: Sequence[str] = (".py",)) -> Path:
    """Write the zip file, which Python can import from; returns its path. endings: of files that go in."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in packages:
            for file in sorted((CHECKOUT / package).rglob("*")):
                if file.suffix in endings:
                    archive.write(file, file.relative_to(CHECKOUT))
    return path
