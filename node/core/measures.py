"""Measures of a system in columns: a file beside the record of deliveries.

The file is a sequence of blocks, each complete or absent: a *schema* gives a number to a name and its
columns, as JSON; *rows* are the times and then column after column, 64 bits each, big-endian. A writer that
continues the file numbers schemas from 0 again. Readers ignore a block that a crash cut short. NumPy is not
needed here.
"""

import json
import re
import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from sys import byteorder

from node.core.machine import Measure

MEASURES_SUFFIX = ".measures"  # replaces the suffix of the record of deliveries
HEAD = struct.Struct(">BII")  # kind of block, number of the schema, bytes of JSON or rows
SCHEMA, ROWS = 0, 1
NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
NAMES_MAX = 1_000
CELL_BYTES = 8


class Columns:
    """Encoder of one process's measures; knows which schemas the file contains."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}

    def encode(self, measured: Iterable[tuple[int, Measure]]) -> bytes:
        """Encode measures with their times, in nanoseconds, as blocks.

        Raises ValueError for names that no path in summary.json can have, or for more than NAMES_MAX schemas.
        """
        found = []
        for schema, group in groupby(measured, lambda each: (each[1].name, *each[1].values)):
            times_ns, values = zip(*((t_ns, each.values.values()) for t_ns, each in group), strict=True)
            if schema not in self._numbers:
                found.append(self._begin(schema))
            found.append(HEAD.pack(ROWS, self._numbers[schema], len(times_ns)))
            found.append(_big_endian(array("q", times_ns)))
            found += [_big_endian(array("d", column)) for column in zip(*values, strict=True)]
        return b"".join(found)

    def _begin(self, schema: tuple[str, ...]) -> bytes:
        for name in schema:
            if not NAME.fullmatch(name):
                raise ValueError(f"{name!r:.60} cannot name a measure: letters, digits, _ and - can")
        if len(self._numbers) >= NAMES_MAX:
            raise ValueError(f"{schema[0]}: there are {NAMES_MAX} measures of other names already")
        self._numbers[schema] = len(self._numbers)
        text = json.dumps(schema).encode()
        return HEAD.pack(SCHEMA, self._numbers[schema], len(text)) + text


class BlockReader:
    """Reader of a file's blocks, also while it is being written: `read_bytes` of it were read so far."""

    def __init__(self) -> None:
        self.read_bytes = 0
        self._schemas: dict[int, list[str]] = {}

    def read(self, data: bytes) -> Iterator[tuple[Sequence[str], int, memoryview]]:
        """Yield the blocks of rows in `data`, which follows the bytes read so far: the name and its columns,
        the number of rows, and their cells, times first. An incomplete block is left for the next call.

        Raises ValueError if the data is not such a file.
        """
        view, at, begin = memoryview(data), 0, self.read_bytes
        while at + HEAD.size <= len(data):
            kind, number, size = HEAD.unpack_from(data, at)
            if kind not in (SCHEMA, ROWS) or (kind == ROWS and number not in self._schemas):
                raise ValueError(f"no block of measures at byte {begin + at}")
            at += HEAD.size
            length = size if kind == SCHEMA else size * len(self._schemas[number]) * CELL_BYTES
            if at + length > len(data):
                return
            if kind == SCHEMA:
                self._schemas[number] = json.loads(data[at : at + length])
            else:
                yield self._schemas[number], size, view[at : at + length]
            at += length
            self.read_bytes = begin + at


def _big_endian(cells: "array[int] | array[float]") -> bytes:
    if byteorder == "little":
        cells.byteswap()
    return cells.tobytes()
