"""Rows of `schemas.RECORDS`, written by hand."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from analysis.timelines import schemas
from node.core.deliveries import RecordKind

Row = dict[str, Any]


def record(
    host: str,
    kind: RecordKind,
    stream: int = 0,
    first_seq: int = 0,
    count: int = 0,
    t_ns: int = 0,
    **more: Any,
) -> Row:
    """Return a record of a host's first session, without bytes."""
    numbers = {"session": 0, "position": 0, "batch_crc": 0, "running_crc": 0, "covered": count}
    place = {"host": host, "kind": int(kind), "stream": stream, "first_seq": first_seq, "count": count}
    return numbers | place | {"t_ns": t_ns} | more


def records_table(rows: Iterable[Row]) -> pa.Table:
    """Return the rows as a table."""
    return pa.Table.from_pylist(list(rows), schema=schemas.RECORDS)
