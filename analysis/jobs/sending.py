"""Executors that do not see the run: what tasks read is sent along through Spark, and what they write comes
back as bytes to this process, which writes the same files.

Files travel by `SparkContext.addFile`: from disk to disk in pieces, each once to each executor, whatever
their size. Spark hands them to whoever asks for them by name, also where it asks for a secret for all else:
so nobody can guess the names. Each parcel of tasks is a Spark job of its own, with a few at once, so that
what comes back is on disk before more is asked for: no more than that many parcels' results are in memory. A
parcel whose executor is lost is done again by another, as with any job. At the end what was sent is removed
from the executors.

What is sent are tasks with their files' names instead of their paths: a task is pickled with every path below
the run's directory taken out and noted, be it a `Path` or a string; where it is unpickled, paths below
another directory are put in. So tasks need not know that they travel. A folder of a table in the making
(`*.part`) is where a task writes; everything else it reads.
"""

import io
import os
import pickle
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import SparkContext, SparkFiles

from analysis.errors import AnalysisError
from analysis.jobs.spark import cause
from analysis.jobs.work import R, Task, handfuls, in_order
from analysis.spark_home import local_folder
from experiments.files.scratch import scratch
from experiments.files.whole_files import remove
from experiments.records.rundir import IN_THE_MAKING, RunDirectory

JOBS_MAX = 32
CHUNK_BYTES = 16 << 20
NAME_BYTES = 16


@dataclass(frozen=True, slots=True)
class Parcel:
    """Some tasks. files: what they read, as (place below the run, name under which it was sent)."""

    tasks: bytes
    files: tuple[tuple[str, str], ...]
    folders: tuple[str, ...]  # places below the run that they write to


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a file that a task wrote. place: below the run."""

    place: str
    offset: int
    content: bytes


class RemoteWorkers:
    """Workers that get files sent. A context manager: at its end nothing of the run is left elsewhere."""

    def __init__(self, context: SparkContext, run: RunDirectory) -> None:
        self._context = context
        self._root = run.path
        self._links = run.table_in_the_making("sent")
        self._sent: dict[tuple[Path, int, int], str] = {}
        self._open = ExitStack()

    def __enter__(self) -> "RemoteWorkers":
        remove(self._links)  # of an analysis that was killed
        self._links.mkdir(parents=True)
        self._open.callback(shutil.rmtree, self._links, ignore_errors=True)
        self._open.callback(self._clear_executors)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def carry_out(self, tasks: Sequence[Task[R]], doing: str) -> list[R]:
        """Do all tasks, elsewhere."""
        gathered = handfuls(tasks, self._context.defaultParallelism)
        parcels = [self._parcel(handful) for handful in gathered]
        if not parcels:
            return []
        work = self._context.parallelize(parcels, len(parcels)).flatMap(_carry_out)
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
        return in_order(tasks, gathered, results)

    def _parcel(self, tasks: Sequence[Task[Any]]) -> Parcel:
        content, paths = pack(tasks, self._root)
        files = tuple((str(path.relative_to(self._root)), self._send(path)) for path in files_of(paths))
        folders = (str(path.relative_to(self._root)) for path in paths if path.suffix == IN_THE_MAKING)
        return Parcel(content, files, tuple(sorted(folders)))

    def _send(self, path: Path) -> str:
        """Have a file sent under a name of its own, once; returns the name."""
        status = path.stat()
        key = (path, status.st_size, status.st_mtime_ns)
        if key not in self._sent:
            link = self._links / f"{secrets.token_hex(NAME_BYTES)}-{path.name}"
            try:
                link.hardlink_to(path)
            except OSError:  # other file systems than usual
                shutil.copy2(path, link)
            self._context.addFile(str(link))
            self._sent[key] = link.name
        return self._sent[key]

    def _job(self, work: Any, number: int) -> list[Any]:
        """Do one parcel; writes what comes back as files, and returns the rest."""
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
        return path.with_name(f".{path.name}.{os.getpid()}")  # readers pass over names with a dot

    def _clear_executors(self) -> None:
        if not self._sent:
            return
        number = self._context.defaultParallelism
        names = list(self._sent.values())
        with suppress(Exception):  # whom this does not reach, its worker clears after the application
            self._context.parallelize([names] * number, number).foreach(_remove)


def _first_failure(jobs: Sequence[Future[Any]]) -> None:
    """Wait for all jobs; raises what the first that failed raised."""
    waiting = set(jobs)
    while waiting:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        for job in done:
            job.result()


def _same(items: Iterable[Any]) -> Iterable[Any]:
    return items


def _carry_out(parcel: Parcel) -> Iterator[Any]:
    """On an executor. Its worker removes Spark's own folders whatever becomes of it, and ours with them."""
    sent = Path(SparkFiles.getRootDirectory()).absolute()
    with scratch("cutset-parcel-", local_folder()) as folder:
        yield from carry_out(parcel, folder, sent)


def _remove(names: Sequence[str]) -> None:
    for name in names:
        Path(SparkFiles.get(name)).unlink(missing_ok=True)


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
    """Tasks without the run's directory, which is `root`; and the paths that were in them."""
    stream = io.BytesIO()
    packer = _Packer(stream, root)
    packer.dump(tuple(tasks))
    return stream.getvalue(), packer.found


def unpack(tasks: bytes, root: Path) -> tuple[Task[Any], ...]:
    """The tasks again, with this directory in place of the run's."""
    found: tuple[Task[Any], ...] = _Unpacker(io.BytesIO(tasks), root).load()
    return found


def files_of(paths: set[Path]) -> list[Path]:
    """The files that tasks with these paths read: each once, those of folders one by one."""
    folders = (path for path in paths if path.is_dir() and path.suffix != IN_THE_MAKING)
    found = paths.union(*(folder.iterdir() for folder in folders))
    return sorted(path for path in found if path.is_file() and not path.name.startswith("."))


def carry_out(parcel: Parcel, scratch: Path, sent: Path) -> Iterator[Any]:
    """Do a parcel's tasks below an empty folder; their results, and then what they wrote.

    sent: the folder in which the files arrived.
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
