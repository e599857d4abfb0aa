"""A cluster's executors as workers: connected, given our modules, probed, and left clean.

Each executor is probed for whether it sees the run's files under the same path: it reads a token and writes a
file. Spark is always stopped at the end, which frees the cluster.

The job sends our own modules as a zip file of the packages that tasks need; the executors must have NumPy and
PyArrow.
"""

import secrets
import socket
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self, TypeVar

from pyspark import SparkContext

from analysis.errors import AnalysisError
from analysis.jobs.probe import ProbeAnswer, ProbeRequest, answer_probe
from analysis.jobs.spark import Executors, collected, number_of_executors
from analysis.jobs.work import Workers
from analysis.session import JAVA_OPTIONS, spark_context
from experiments.files.scratch import scratch
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

Argument = TypeVar("Argument")
Result = TypeVar("Result")

MODULES = "cutset.zip"
SCHEME = "spark://"
CONNECT_WAIT_S = 5.0
EXECUTORS_WAIT_S = 60.0
SETTLED_S = 2.0
"""Executors register one after the other. All are assumed to be there when no new one has come for this time,
and for as long as the first one took: machines that start the first one slowly start the others slowly, too.
"""
_POLL_S = 0.1


class Cluster:
    """A connection to a cluster, from the first run that its executors work on until the end of the block."""

    def __init__(self, master: str) -> None:
        """Prepare without connecting."""
        self._master = master
        self._context: SparkContext | None = None
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _connected(self, progress: Callable[[str], None]) -> SparkContext:
        """Return the Spark context. Raises as `workers_for`."""
        if self._context is None:
            settings = _settings(self._master)
            progress(f"starting Spark on {self._master}")
            with ExitStack() as stack:
                context = spark_context(self._master, settings)
                stack.callback(context.stop)
                folder = stack.enter_context(scratch("cutset-modules-", Path(tempfile.gettempdir())))
                context.addPyFile(str(write_modules(folder / MODULES)))
                _wait_for_executors(context, self._master)
                self._open = stack.pop_all()
            self._context = context
        return self._context

    @contextmanager
    def workers_for(self, run: RunDirectory, progress: Callable[[str], None]) -> Iterator[Workers]:
        """Provide the cluster's executors as workers for a run.

        Raises InputError if the master's URL is invalid, AnalysisError if the cluster cannot be reached or
        its executors cannot do the work.
        """
        context = self._connected(progress)
        number = number_of_executors(context)
        with run.unfinished("seen") as folders:
            sizes = {path: path.stat().st_size for path in run.captures.glob("*") if path.is_file()}
            self._check_folder(run.path, ProbeRequest(folders["seen"], secrets.token_hex(), sizes))
        progress(f"{number} executors work on the run in place")
        yield Executors(context)

    def each(
        self,
        function: Callable[[Argument], Result],
        arguments: Sequence[Argument],
        folder: Path,
        progress: Callable[[str], None],
    ) -> list[Result]:
        """Return the results of a function for these arguments, each computed by one task.

        folder: where the tasks read and write. Raises as `workers_for`.
        """
        context = self._connected(progress)
        with scratch(".seen-", folder) as seen:
            self._check_folder(folder, ProbeRequest(seen, secrets.token_hex(), {}, (function.__module__,)))
        progress(f"{number_of_executors(context)} executors work in {folder}")
        tasks = context.parallelize(arguments, len(arguments))
        return collected(tasks.map(function), function.__name__)

    def _check_folder(self, folder: Path, question: ProbeRequest) -> None:
        """Check that all executors can work in a folder. Raises AnalysisError."""
        if not _sees(self._connected(lambda _: None), question):
            raise AnalysisError(
                f"{folder}: not all executors of {self._master} can read and write there; "
                "give a folder that all see under this path"
            )


def _settings(master: str) -> dict[str, str]:
    """Return settings for this master. Spark's driver listens on the address that faces the master."""
    settings = {
        "spark.files.useFetchCache": "false",  # it would keep a second copy of sent files
        "spark.executor.extraJavaOptions": " ".join(JAVA_OPTIONS),  # Java does little work there, too
    }
    if not master.startswith(SCHEME):
        if master != "yarn" and not master.startswith("k8s://"):
            raise InputError(master, None, "", "is not a Spark master: spark://HOST:PORT, yarn or k8s://…")
        return settings
    here = _address_towards(master)
    return settings | {"spark.driver.host": here, "spark.driver.bindAddress": here}


def _address_towards(master: str) -> str:
    """Return our address on the route to the master. Raises AnalysisError if the master does not answer."""
    problems = []
    for place in master.removeprefix(SCHEME).split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdigit():
            raise InputError(
                master, None, "", "is not a Spark master: it must have the form spark://HOST:PORT"
            )
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_WAIT_S) as connection:
                return str(connection.getsockname()[0])
        except (OSError, OverflowError) as error:
            problems.append(str(error))
    raise AnalysisError(
        f"{master} cannot be reached: {'; '.join(problems)}. Is the master running, and is this its address?"
    )


def _wait_for_executors(context: SparkContext, master: str) -> int:
    """Wait until the cluster has provided executors; returns their number."""
    began = changed = time.monotonic()  # Spark requested them just before
    number = 0
    settled_s = SETTLED_S
    while True:
        now, before = time.monotonic(), number
        number = number_of_executors(context)
        if number != before:
            changed = now
            settled_s = settled_s if before else max(SETTLED_S, now - began)
        if number and now - changed >= settled_s:
            return number
        if not number and now - began >= EXECUTORS_WAIT_S:
            raise AnalysisError(
                f"{master} provided no executor within {EXECUTORS_WAIT_S:g} s: "
                "are its workers alive, with cores and memory to spare, and can they connect to this machine?"
            )
        time.sleep(_POLL_S)


def _sees(context: SparkContext, question: ProbeRequest) -> bool:
    """Return whether all executors can read and write a folder. Raises AnalysisError if one cannot work."""
    question.note.write_text(question.token)
    slots = context.defaultParallelism  # Spark fills all slots at once, so each executor is probed
    answers = collected(context.parallelize([question] * slots, slots).map(answer_probe), "probing executors")
    check_probe_answers(answers)
    return all(_shares_folder(answer, question.folder) for answer in answers)


def check_probe_answers(answers: Sequence[ProbeAnswer]) -> None:
    """Check that executors have the packages that tasks need. Raises AnalysisError if one lacks any."""
    for answer in answers:
        if answer.missing:
            missing = " and no ".join(answer.missing)
            raise AnalysisError(
                f"executors on {answer.host} run {answer.python}, which has no {missing}: "
                "install them there, or set PYSPARK_PYTHON to a Python of theirs that has them"
            )


def _shares_folder(answer: ProbeAnswer, folder: Path) -> bool:
    return answer.reads and answer.written is not None and (folder / answer.written).exists()


CHECKOUT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("analysis", "experiments", "node", "systems", "testbed", "topologies")


def write_modules(path: Path) -> Path:
    """Write the zip file, from which Python can import; returns its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for file in sorted((CHECKOUT / package).rglob("*.py")):
                archive.write(file, file.relative_to(CHECKOUT))
    return path
