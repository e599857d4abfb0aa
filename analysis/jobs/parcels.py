"""Tasks for where the run is not: with their files' names instead of their paths, and back.

A task is pickled with every path below the run's directory taken out and noted, be it a `Path` or a string;
where it is unpickled, paths below another directory are put in. So tasks need not know that they travel.
A folder of a table in the making (`*.part`) is where a task writes; everything else it reads.
"""

import io
import os
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.jobs.work import Task
from experiments.rundir import IN_THE_MAKING

CHUNK_BYTES = 16 << 20


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
