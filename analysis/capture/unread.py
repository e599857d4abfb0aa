"""Reports which of a run's connections could not be read, from the table of decoding: TLS without its keys,
and compressed payloads.

An unread connection may have carried any event. If there is one, the analysis takes events from the clients'
own records instead of from packets.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory
from topologies.first_texts import first_texts

REASONS_MAX = 3
HOLES = "bytes of it are missing from the capture"
_COLUMNS = [
    "host", "src", "sport", "dst", "dport", "connection", "snapped_bytes", "undecoded_bytes", "stopped"
]  # fmt: skip


def unread_in(record: RunRecord, decoding: pa.Table) -> str:
    """Return the number of unread connections by reason; "" if all were read.

    decoding: rows of `analysis.schemas.DECODING`. Bytes missing from a capture without drops never reached
    the host, which could not read anything after them either.
    """
    if not record.plan.declared.shows_events:
        return ""
    whole = {each.host for each in record.listed_captures if each.kernel_drops == 0}
    suspect = decoding.filter(pc.field("stopped").is_valid() | (pc.field("undecoded_bytes") > 0))
    found: dict[str, set[frozenset[Any]]] = defaultdict(set)
    met: set[frozenset[Any]] = set()
    for row in suspect.select(_COLUMNS).sort_by("host").to_pylist():
        why = _why(row, whole)
        connection = frozenset(((row["src"], row["sport"]), (row["dst"], row["dport"]), row["connection"]))
        if why and connection not in met:
            met.add(connection)
            found[why].add(connection)
    texts = [f"{_number(len(which))} not read: {why}" for why, which in sorted(found.items())]
    return "; ".join(first_texts(texts, REASONS_MAX, " reasons"))


def unread(run: RunDirectory) -> str:
    """Return the report of `unread_in` for an analysed run; "" for another."""
    path = run.table("decoding")
    return unread_in(run.read_run(), pq.read_table(path)) if path.is_dir() else ""


def _why(row: Mapping[str, Any], whole: set[str | None]) -> str:
    if row["stopped"]:
        return str(row["stopped"])
    return HOLES if row["snapped_bytes"] or row["host"] not in whole else ""


def _number(count: int) -> str:
    return f"{count} connection was" if count == 1 else f"{count} connections were"
