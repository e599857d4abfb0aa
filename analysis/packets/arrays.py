"""Numbers between Arrow and NumPy, without copies and without Pandas.

Arrow's own conversions import Pandas, which takes half a second: as long as everything else until the first
line of `cutset packets`. Source: "Physical memory layout" of Arrow's columnar format.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def from_arrow(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.integer]:
    """Integers, none of them null."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    kind = np.dtype(str(array.type))
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


def flags(values: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """Booleans; null is False."""
    found = _bits(values, values.buffers()[1])
    valid = values.buffers()[0]
    return found if valid is None else found & _bits(values, valid)


def _bits(values: pa.Array, buffer: pa.Buffer) -> npt.NDArray[np.bool_]:
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
    return bits[values.offset : values.offset + len(values)].astype(np.bool_)


def to_arrow(values: npt.NDArray[Any]) -> pa.Array:
    """Integers for Arrow."""
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, values.size, [None, pa.py_buffer(np.ascontiguousarray(values))])


def strings(values: Collection[str]) -> pa.StringArray:
    """Strings for Arrow."""
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))
