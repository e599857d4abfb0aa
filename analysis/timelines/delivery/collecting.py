"""Events that drivers marked as collecting others, and their keys (`node.core.collection_marks`).

If every event collects by number or age, there are no marks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from analysis.arrays import Bools, Ints, ParallelArrays, begins, offsets
from analysis.timelines.delivery.epochs import EpochLayout
from node.core.collection_marks import COLLECTS, HAS_KEYS, HEAD, KEY_BYTES

Keys = npt.NDArray[np.uint64]
Mark = tuple[int, int, int, bool, Keys]  # stream, first_seq, count, collects, keys


@dataclass(frozen=True, slots=True)
class CollectionMarks(ParallelArrays):
    """All marked events of a run as parallel arrays, in any order. Events without keys have key 0."""

    stream: Ints
    seq: Ints
    collects: Bools
    keys: Keys

    def laid_out(self, epochs: EpochLayout) -> "CollectionMarks":
        """Return the marks with sequence numbers that are comparable across epochs."""
        return replace(self, seq=epochs.numbers(self.stream, self.seq))

    def marks_of_stream(self, stream: int) -> "CollectionMarks":
        """Return the marks of one stream."""
        return self.take(self.stream == stream)


def read_marks(paths: Sequence[Path]) -> CollectionMarks:
    """Read the marks in these files; any may be missing. A mark that a crash cut short is omitted."""
    return marks_in(path.read_bytes() for path in paths if path.is_file())


def marks_in(files: Iterable[bytes]) -> CollectionMarks:
    """Return the marks in the contents of such files."""
    marks = [mark for data in files for mark in _marks(data)]
    counts = np.array([mark[2] for mark in marks], np.int64)
    stream, first, collects = (
        np.repeat(np.array([mark[at] for mark in marks], np.int64), counts) for at in (0, 1, 3)
    )
    keys = np.concatenate([np.zeros(0, np.uint64), *(mark[4] for mark in marks)])
    return CollectionMarks(stream, first + offsets(counts), collects.astype(bool), keys)


def _marks(data: bytes) -> Iterator[Mark]:
    at = 0
    while at + HEAD.size <= len(data):
        stream, count, first_seq, flags = HEAD.unpack_from(data, at)
        at += HEAD.size
        keys = np.zeros(count, np.uint64)
        if flags & HAS_KEYS:
            if at + KEY_BYTES * count > len(data):
                return
            keys = np.frombuffer(data, ">u8", count, at).astype(np.uint64)
            at += KEY_BYTES * count
        yield stream, first_seq, count, bool(flags & COLLECTS), keys


def collectable(marks: CollectionMarks) -> Bools:
    """Return, for each marked event of one stream, whether a later one with its key collects it."""
    order = np.lexsort((marks.seq, marks.keys))
    keys, collects = marks.keys[order], marks.collects[order]
    place = np.arange(len(order))
    starts = np.flatnonzero(begins(keys))
    found = np.zeros(len(order), bool)
    if len(order):
        last = np.maximum.reduceat(np.where(collects, place, -1), starts)
        sizes = np.diff(np.append(starts, len(order)))
        found[order] = place < np.repeat(last, sizes)
    return found
