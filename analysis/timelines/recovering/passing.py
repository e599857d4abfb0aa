"""Distinguishes a host's own messages from those that it only forwards for others.

A message with a destination (`target`) is forwarded by every other host. A message that is routed by its key
(`Reading.routed`) names no destination: a host forwarded it if it sent the same message after it arrived, and
before it arrived again.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import Bools
from analysis.messages.label import address_text
from analysis.schemas import ENDS_COLUMNS
from analysis.timelines.run_metadata import RunMetadata

_KEY = ("type", "stream", "first_seq", "count")


def own_and_forwarded(messages: pa.Table, metadata: RunMetadata) -> tuple[pa.Table, pa.Table]:
    """Return one host's own rows of `analysis.schemas.MESSAGES`, and those that it forwards."""
    if not messages.num_rows or messages.column("within").null_count == messages.num_rows:
        return messages, messages.slice(0, 0)
    came = pc.equal(messages.column("direction"), "in")
    end = end_hosts(pc.if_else(came, messages.column("target"), messages.column("source")), metadata)
    mine = pc.fill_null(pc.equal(end, messages.column("host")), True).to_numpy(zero_copy_only=False)
    mine &= ~_routed_on(messages, metadata)
    return messages.filter(pa.array(mine)), messages.filter(pa.array(~mine))


def without_ends(messages: pa.Table) -> pa.Table:
    """Return the same rows without end points: as messages from and to the neighbours."""
    for name in ENDS_COLUMNS:
        place = messages.column_names.index(name)
        messages = messages.set_column(place, name, pa.nulls(messages.num_rows, pa.int64()))
    return messages


def end_hosts(addresses: pa.ChunkedArray, metadata: RunMetadata) -> pa.Array:
    """Return the hosts at numeric addresses; null if there is none."""
    coded = pc.dictionary_encode(addresses.combine_chunks())
    texts = [None if each is None else address_text(each) for each in coded.dictionary.to_pylist()]
    names = pa.array([None if text is None else metadata.host_at.get(text) for text in texts], pa.string())
    return names.take(coded.indices)


def _routed_on(messages: pa.Table, metadata: RunMetadata) -> Bools:
    """Return which routed messages a host only forwarded: both the incoming and the outgoing ones."""
    routed = set(metadata.reading.routed)
    texts = pc.unique(messages.column("within")).to_pylist()
    paths = [path for path in texts if path and not routed.isdisjoint(path.split())]
    chosen = pc.is_in(messages.column("within"), value_set=pa.array(paths, pa.string())).to_numpy()
    found = np.zeros(messages.num_rows, bool)
    waiting: dict[tuple[object, ...], int] = {}
    rows = messages.select([*_KEY, "direction", "t_first_ns"]).filter(pa.array(chosen)).to_pylist()
    places = np.flatnonzero(chosen).tolist()
    for place, row in sorted(zip(places, rows, strict=True), key=lambda each: int(each[1]["t_first_ns"])):
        key = _key_of(row)
        if row["direction"] == "in":
            waiting[key] = place
        elif key in waiting:
            found[[place, waiting.pop(key)]] = True
    return found


def _key_of(row: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in _KEY)
