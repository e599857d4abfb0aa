"""Conversion of numbers between Arrow and NumPy, without copies and without Pandas.

Arrow's own conversions import Pandas, which takes half a second, as long as all other work until the first
line of `cutset packets`. Source: "Physical memory layout" of Arrow's columnar format.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def from_arrow(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.integer]:
    """Return integers as a NumPy array. The value of a null is undefined."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    kind, content = np.dtype(str(array.type)), array.buffers()[1]
    if content is None:
        return np.zeros(len(array), kind)
    return np.frombuffer(content, kind)[array.offset : array.offset + len(array)]


def known(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which values are not null."""
    valid = values.buffers()[0]
    return np.ones(len(values), np.bool_) if valid is None else _bits(values, valid)


def flags(values: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """Return booleans as a NumPy array; null is False."""
    return _bits(values, values.buffers()[1]) & known(values)


def _bits(values: pa.Array, buffer: pa.Buffer) -> npt.NDArray[np.bool_]:
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
    return bits[values.offset : values.offset + len(values)].astype(np.bool_)


def to_arrow(values: npt.NDArray[Any]) -> pa.Array:
    """Return integers as an Arrow array."""
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, values.size, [None, pa.py_buffer(np.ascontiguousarray(values))])


def strings(values: Collection[str]) -> pa.StringArray:
    """Return strings as an Arrow array."""
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))
