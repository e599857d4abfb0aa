"""The nodes' records of deliveries as a table: what each client got and what each driver knows to be
published.

A file is read whole, vectorised, through the field list of node.core.deliveries. A torn record at its end (a
crash) is left out.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.errors import AnalysisError
from analysis.timelines import schemas
from node.core.deliveries import HEADER, RECORD_FIELDS, RecordKind, check_file_header, whole_bytes

RECORD = np.dtype(list(RECORD_FIELDS))


def read_file(host: str, path: Path) -> pa.Table:
    """One file as rows of `schemas.RECORDS`; a file that is not there has none.

    Raises AnalysisError if it is no record of deliveries.
    """
    data = path.read_bytes() if path.is_file() else b""
    end = whole_bytes(len(data))
    if end:
        try:
            check_file_header(data)
        except ValueError as error:
            raise AnalysisError(f"{path}: {error}") from None
    rows = np.frombuffer(data[HEADER.size : end], RECORD)
    starts = np.cumsum(rows["kind"] == RecordKind.SESSION)
    columns = [
        pa.array([host] * len(rows), pa.string()),
        np.maximum(starts - 1, 0).astype(np.int32),
        np.arange(len(rows), dtype=np.int64),
        *(rows[name].astype(np.int32) for name in ("kind", "stream")),
        *(
            rows[name].astype(np.int64)
            for name in ("first_seq", "count", "time_ns", "batch_crc", "running_crc")
        ),
    ]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=schemas.RECORDS)
