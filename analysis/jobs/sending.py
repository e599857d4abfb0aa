"""Executors without access to the run: Spark sends the input files, and results return as bytes.

This process writes the returned files. Input files travel by `SparkContext.addFile`: from disk to disk in
pieces, each once to each executor, whatever their size. Spark serves a file to anyone who requests it by
name, even if it requires a secret for everything else, so names are random. Each parcel of tasks is a Spark
job of its own, and only a few run at once, so that results are on disk before the next parcel starts: memory
holds at most that many parcels' results. If an executor is lost, another one repeats its parcel, as with any
job. At the end the input files are removed from the executors.

Tasks are sent with relative file names. A task is pickled with each path below the run's directory, `Path` or
string, replaced and recorded; unpickling inserts paths below another directory. So tasks need not know that
they run remotely. A task writes to folders of tables in the making (`*.part`) and reads everything else.
"""

import io
import os
import pickle
import secrets
import shutil
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import SparkContext, SparkFiles

from analysis.errors import AnalysisError
from analysis.jobs.spark import cause, number_of_executors
from analysis.jobs.work import R, Task, results_in_task_order, task_batches
from analysis.spark_home import local_folder
from experiments.files.scratch import scratch
from experiments.records.rundir import UNFINISHED_SUFFIX, RunDirectory

JOBS_MAX = 32
CHUNK_BYTES = 16 << 20
NAME_BYTES = 16
CLEAR_S = 20.0
"""For all executors to be cleared; Spark ends the Python of a cancelled task after some seconds."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """Some tasks. files: their input files, as (path below the run, name under which it was sent)."""

    tasks: bytes
    files: tuple[tuple[str, str], ...]
    folders: tuple[str, ...]  # paths below the run that they write to


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a file that a task wrote. place: its path below the run."""

    place: str
    offset: int
    content: bytes


class RemoteWorkers:
    """Workers that receive files. A context manager: at its end no copy of the run is left elsewhere."""

    def __init__(self, context: SparkContext, run: RunDirectory) -> None:
        self._context = context
        self._root = run.path
        self._unfinished = run.unfinished("sent")
        self._sent: dict[tuple[Path, int, int], str] = {}
        self._open = ExitStack()

    def __enter__(self) -> "RemoteWorkers":
        self._links = self._open.enter_context(self._unfinished)["sent"]
        self._open.callback(self._clear_executors)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def execute(self, tasks: Sequence[Task[R]], doing: str) -> list[R]:
        """Run all tasks on the executors."""
        gathered = task_batches(tasks, self._context.defaultParallelism)
        parcels = [self._parcel(handful) for handful in gathered]
        if not parcels:
            return []
        work = self._context.parallelize(parcels, len(parcels)).flatMap(_run_parcel)
        results: list[R] = []
        with ThreadPoolExecutor(min(JOBS_MAX, self._context.defaultParallelism + 1)) as pool:
            jobs = [pool.submit(self._job, work, number) for number in range(len(parcels))]
            try:
                _first_failure(jobs)
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)
                self._context.cancelAllJobs()
                if isinstance(error, Exception):
                    raise AnalysisError(f"{doing} failed: {cause(error)}") from error
                raise
            for job in jobs:
                results += job.result()
        return results_in_task_order(tasks, gathered, results)

    def _parcel(self, tasks: Sequence[Task[Any]]) -> Parcel:
        content, paths = pack(tasks, self._root)
        files = tuple((str(path.relative_to(self._root)), self._send(path)) for path in files_of(paths))
        folders = (str(path.relative_to(self._root)) for path in paths if path.suffix == UNFINISHED_SUFFIX)
        return Parcel(content, files, tuple(sorted(folders)))

    def _send(self, path: Path) -> str:
        """Send a file under a random name, once; returns the name."""
        status = path.stat()
        key = (path, status.st_size, status.st_mtime_ns)
        if key not in self._sent:
            link = self._links / f"{secrets.token_hex(NAME_BYTES)}-{path.name}"
            try:
                link.hardlink_to(path)
            except OSError:  # the file system has no hard links
                shutil.copy2(path, link)
            self._sent[key] = link.name  # first, because Ctrl-C may come while Spark takes the file
            self._context.addFile(str(link))
        return self._sent[key]

    def _job(self, work: Any, number: int) -> list[Any]:
        """Run one parcel; writes the returned files, and returns the other results."""
        results, places = [], set()
        for item in self._context.runJob(work, _same, [number]):
            if not isinstance(item, Chunk):
                results.append(item)
                continue
            places.add(item.place)
            with self._arriving(item.place).open("ab" if item.offset else "wb") as file:
                file.write(item.content)
        for place in places:
            self._arriving(place).replace(self._root / place)
        return results

    def _arriving(self, place: str) -> Path:
        path = self._root / place
        return path.with_name(f".{path.name}.{os.getpid()}")  # readers ignore names with a leading dot

    def _clear_executors(self) -> None:
        """Remove what was sent from every executor. One that still ends a cancelled task takes no new one."""
        if not self._sent:
            return
        number = self._context.defaultParallelism
        names, until_s = list(self._sent.values()), time.monotonic() + CLEAR_S
        with suppress(Exception):  # an unreachable executor keeps its files until its worker clears them
            work = self._context.parallelize([names] * number, number).map(_remove)
            cleared = set(work.collect())
            while len(cleared) < number_of_executors(self._context) and time.monotonic() < until_s:
                cleared.update(work.collect())


def _first_failure(jobs: Sequence[Future[Any]]) -> None:
    """Wait for all jobs; raises the error of the first that failed."""
    waiting = set(jobs)
    while waiting:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        for job in done:
            job.result()


def _same(items: Iterable[Any]) -> Iterable[Any]:
    return items


def _run_parcel(parcel: Parcel) -> Iterator[Any]:
    """Run a parcel on an executor. Its worker always removes Spark's folders, and ours with them."""
    sent = Path(SparkFiles.getRootDirectory()).absolute()
    with scratch("cutset-parcel-", local_folder()) as folder:
        yield from execute(parcel, folder, sent)


def _remove(names: Sequence[str]) -> tuple[str, str]:
    """Remove files from this executor, and from ended ones of its job on this host; return its identity."""
    own = Path(SparkFiles.getRootDirectory()).absolute()
    for name in names:
        for path in own.parent.glob(f"*/{name}"):
            path.unlink(missing_ok=True)
    return socket.gethostname(), str(own)


class _Packer(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, root: Path) -> None:
        super().__init__(stream, pickle.HIGHEST_PROTOCOL)
        self._root, self._below = root, f"{root}{os.sep}"
        self.found: set[Path] = set()

    def persistent_id(self, value: Any) -> tuple[bool, str] | None:
        if not isinstance(value, str | Path) or not str(value).startswith(self._below):
            return None
        path = Path(value)
        self.found.add(path)
        return isinstance(value, str), str(path.relative_to(self._root))


class _Unpacker(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, root: Path) -> None:
        super().__init__(stream)
        self._root = root

    def persistent_load(self, found: tuple[bool, str]) -> str | Path:
        was_text, place = found
        return str(self._root / place) if was_text else self._root / place


def pack(tasks: Sequence[Task[Any]], root: Path) -> tuple[bytes, set[Path]]:
    """Pickle tasks without the run's directory, which is `root`. Also return the paths that were in them."""
    stream = io.BytesIO()
    packer = _Packer(stream, root)
    packer.dump(tuple(tasks))
    return stream.getvalue(), packer.found


def unpack(tasks: bytes, root: Path) -> tuple[Task[Any], ...]:
    """Return the tasks, with this directory in place of the run's."""
    found: tuple[Task[Any], ...] = _Unpacker(io.BytesIO(tasks), root).load()
    return found


def files_of(paths: set[Path]) -> list[Path]:
    """Return the files that tasks with these paths read, each once; a folder includes its files."""
    folders = (path for path in paths if path.is_dir() and path.suffix != UNFINISHED_SUFFIX)
    found = paths.union(*(folder.iterdir() for folder in folders))
    return sorted(path for path in found if path.is_file() and not path.name.startswith("."))


def execute(parcel: Parcel, scratch: Path, sent: Path) -> Iterator[Any]:
    """Run a parcel's tasks below an empty folder. Yield their results, then the files that they wrote.

    sent: the folder with the received files.
    """
    root = scratch / "run"
    for place, name in parcel.files:
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(sent / name)
    for place in parcel.folders:
        (root / place).mkdir(parents=True, exist_ok=True)
    for task in unpack(parcel.tasks, root):
        yield task.run()
    for place in parcel.folders:
        for path in sorted((root / place).iterdir()):
            yield from _chunks(path, f"{place}/{path.name}")


def _chunks(path: Path, place: str) -> Iterator[Chunk]:
    with path.open("rb") as file:
        for offset in range(0, max(1, path.stat().st_size), CHUNK_BYTES):
            yield Chunk(place, offset, file.read(CHUNK_BYTES))
