"""Rows of MESSAGES seen leaving a host and seen coming to others, joined into rows of TRANSFERS as they are
read.

Both sides come stretch by stretch. Messages of one connection come in the order of its stream on either side,
so a row needs to wait for its other half only until the other side is past its offset; where the other side's
connection ends is told beforehand. So memory holds how far the two sides are apart, not the sides.

What left and never came is lost, if the receiver's capture can tell; see `Receivers`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analysis.capture.pcap.files.format import Integers
from analysis.schemas import ARRIVED, LOST, MESSAGES, TRANSFERS, UNSEEN

CONNECTION = ("src", "dst", "sport", "dport", "connection")
Key = tuple[str, str, int, int, int]
_OF_ENDS = ("t_ns", "sender", "receiver", "t_sent_ns", "t_left_ns", "t_arrived_ns", "t_complete_ns", "fate")
_SHARED = tuple(name for name in TRANSFERS.names if name not in _OF_ENDS)
COLUMNS = tuple(name for name in MESSAGES.names if name in {*_SHARED, "t_first_ns", "t_complete_ns"})
"""Of MESSAGES, what transfers are made of: not whose capture it was, nor which way it went there."""
_ROWS = pa.schema([MESSAGES.field(name) for name in COLUMNS])
_OFFSET_BITS = 44  # 16 TiB of one stream
_Times = tuple[pa.ChunkedArray | pa.Array, pa.ChunkedArray | pa.Array]
"""When a message was first seen, and when it was whole."""

Mask = npt.NDArray[np.bool_]


def key_of(row: Mapping[str, Any]) -> Key:
    """The connection, in one direction, of a row of MESSAGES or DECODING."""
    return row["src"], row["dst"], row["sport"], row["dport"], row["connection"]


@dataclass(frozen=True, slots=True)
class Receivers:
    """What the receivers' captures can tell.

    Of a host in `deaf` (its capture dropped packets), or not in `captured`, nobody knows what did not come.
    Of one in `torn` (its capture is damaged or ended early), or of a connection in `undecoded`, what did not
    come is lost if something after it in the stream came; of the rest nobody knows.
    """

    captured: frozenset[str]  # hosts
    deaf: frozenset[str] = frozenset()
    torn: frozenset[str] = frozenset()
    undecoded: frozenset[Key] = frozenset()


@dataclass(frozen=True, slots=True)
class Reach:
    """The last message's offset of each connection that one side saw."""

    last: Mapping[Key, int]

    @staticmethod
    def of(table: pa.Table) -> "Reach":
        """From these rows of MESSAGES."""
        found = table.group_by(list(CONNECTION)).aggregate([("stream_offset", "max")]).to_pylist()
        return Reach({key_of(row): row["stream_offset_max"] for row in found})

    def __or__(self, other: "Reach") -> "Reach":
        keys = {**self.last, **other.last}
        return Reach({key: max(self.last.get(key, -1), other.last.get(key, -1)) for key in keys})


@dataclass(slots=True)
class _Side:
    """Rows that still wait for their other half, and how far each connection was read."""

    last: Integers  # by connection: the offset of the last message there will be; -1: none
    table: pa.Table = field(default_factory=_ROWS.empty_table)
    keys: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    read: Integers = field(init=False)  # by connection: offset up to which it was read

    def __post_init__(self) -> None:
        self.read = np.full(self.last.size, -1)

    def add(self, table: pa.Table, keys: Integers) -> None:
        if not table.num_rows:
            return
        self.table = pa.concat_tables([self.table, table.select(COLUMNS)])
        self.keys = np.concatenate((self.keys, keys))
        np.maximum.at(self.read, keys >> _OFFSET_BITS, keys & ((1 << _OFFSET_BITS) - 1))

    def passed(self, keys: Integers) -> Mask:
        """Whether a message with this key would have been read here if there was one."""
        connection, offset = keys >> _OFFSET_BITS, keys & ((1 << _OFFSET_BITS) - 1)
        found: Mask = (self.read[connection] >= offset) | (self.last[connection] < offset)
        return found

    def keep(self, rows: Integers) -> None:
        self.table = self.table.take(pa.array(rows)) if rows.size else _ROWS.empty_table()
        self.keys = self.keys[rows]


class Matcher:
    """Joins what one host sent with what came of it."""

    def __init__(self, sent: Reach, arrived: Reach, hosts: Mapping[str, str], receivers: Receivers) -> None:
        """hosts: address -> host."""
        keys = list({**sent.last, **arrived.last})
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._sent, self._arrived = (
            _Side(np.array([reach.last.get(key, -1) for key in keys], np.int64)) for reach in (sent, arrived)
        )
        self._hosts = hosts
        self._receivers = receivers
        names = [hosts.get(key[1], "") for key in keys]
        self._known = np.array([name in receivers.captured - receivers.deaf for name in names], np.bool_)
        self._to_the_end = np.array(
            [
                name not in receivers.torn and key not in receivers.undecoded
                for key, name in zip(keys, names, strict=True)
            ],
            np.bool_,
        )

    def take(self, sent: pa.Table, arrived: pa.Table) -> pa.Table:
        """Some more rows of both sides; returns what is known by now, in no order."""
        self._sent.add(sent, self._keys(sent))
        self._arrived.add(arrived, self._keys(arrived))
        order = np.argsort(self._arrived.keys, kind="stable")
        ascending = self._arrived.keys[order]
        place = np.searchsorted(ascending, self._sent.keys)
        inside = np.minimum(place, max(ascending.size - 1, 0))
        both = ascending[inside] == self._sent.keys if ascending.size else np.zeros(place.size, np.bool_)
        left, right = np.flatnonzero(both), order[inside[both]] if ascending.size else place[:0]
        waits = np.ones(ascending.size, np.bool_)
        waits[right] = False
        alone = ~both & self._arrived.passed(self._sent.keys)
        came_alone = waits & self._sent.passed(self._arrived.keys)
        found = [
            self._met(self._sent.table.take(pa.array(left)), self._arrived.table.take(pa.array(right))),
            self._only_left(self._sent.table.filter(pa.array(alone)), self._fates(self._sent.keys[alone])),
            self.only_came(self._arrived.table.filter(pa.array(came_alone))),
        ]
        self._sent.keep(np.flatnonzero(~both & ~alone))
        self._arrived.keep(np.flatnonzero(waits & ~came_alone))
        return pa.concat_tables(found)

    def only_came(self, arrived: pa.Table) -> pa.Table:
        """Rows of messages whose senders were not captured."""
        nothing = pa.nulls(arrived.num_rows, pa.int64())
        return self._rows(arrived, (nothing, nothing), _times(arrived), self._fates_of_seen(arrived))

    def _only_left(self, out: pa.Table, fates: pa.Array) -> pa.Table:
        nothing = pa.nulls(out.num_rows, pa.int64())
        return self._rows(out, _times(out), (nothing, nothing), fates)

    def _met(self, out: pa.Table, in_: pa.Table) -> pa.Table:
        either = [_either(out.column(name), in_.column(name)) for name in _SHARED]
        content = pa.table([*either, out.column("t_first_ns")], [*_SHARED, "t_first_ns"])
        return self._rows(content, _times(out), _times(in_), self._fates_of_seen(in_))

    def _keys(self, table: pa.Table) -> Integers:
        """One number for each row: its connection's, then its offset."""
        if not table.num_rows:
            return np.zeros(0, np.int64)
        codes = np.zeros(table.num_rows, np.int64)
        for name in CONNECTION:
            column = table.column(name).combine_chunks().dictionary_encode()
            joined = codes * max(len(column.dictionary), 1) + column.indices.to_numpy()
            codes = pa.array(joined).dictionary_encode().indices.to_numpy().astype(np.int64)
        _, first = np.unique(codes, return_index=True)
        some = table.select(CONNECTION).take(pa.array(first)).to_pylist()
        numbers = np.array([self._numbers[key_of(row)] for row in some], np.int64)
        keys: Integers = numbers[codes] << _OFFSET_BITS | table.column("stream_offset").to_numpy()
        return keys

    def _fates(self, keys: Integers) -> pa.Array:
        """Of messages that left and did not come."""
        connection, offset = keys >> _OFFSET_BITS, keys & ((1 << _OFFSET_BITS) - 1)
        overtaken = self._arrived.last[connection] > offset
        lost = self._known[connection] & (self._to_the_end[connection] | overtaken)
        return pa.array(np.where(lost, LOST, UNSEEN), pa.string())

    def _rows(self, content: pa.Table, left: _Times, came: _Times, fates: pa.Array) -> pa.Table:
        """Rows of TRANSFERS."""
        columns = {name: content.column(name) for name in _SHARED} | {
            "t_ns": content.column("t_first_ns"),
            "sender": self._names(content.column("src")),
            "receiver": self._names(content.column("dst")),
            "t_sent_ns": left[0],
            "t_left_ns": left[1],
            "t_arrived_ns": came[0],
            "t_complete_ns": came[1],
            "fate": fates,
        }
        return pa.table([columns[field.name].cast(field.type) for field in TRANSFERS], TRANSFERS)

    def _fates_of_seen(self, arrived: pa.Table) -> pa.Array:
        """Of messages of which something came: arrived if whole, with all before it."""
        t_complete = arrived.column("t_complete_ns")
        if not t_complete.null_count:
            return pa.repeat(ARRIVED, arrived.num_rows)
        there = pc.is_valid(t_complete).to_numpy()
        lost = np.where(self._known[self._keys(arrived) >> _OFFSET_BITS], LOST, UNSEEN)
        return pa.array(np.where(there, ARRIVED, lost), pa.string())

    def _names(self, addresses: pa.ChunkedArray) -> pa.Array:
        known = pa.array(list(self._hosts), pa.string())
        found = pc.index_in(addresses.combine_chunks(), value_set=known)
        return pa.array(list(self._hosts.values()), pa.string()).take(found)


def _times(seen: pa.Table) -> _Times:
    return seen.column("t_first_ns"), seen.column("t_complete_ns")


def _either(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.ChunkedArray:
    """The first value, or the second where that is null."""
    if not first.null_count or second.null_count == len(second):
        return first
    if not pa.types.is_list(first.type):
        return pc.coalesce(first, second)
    both = pa.concat_arrays([*first.chunks, *second.chunks])  # pc.coalesce knows no lists
    rows = np.arange(len(first))
    there = pc.is_valid(first).to_numpy()
    return pa.chunked_array([both.take(pa.array(np.where(there, rows, rows + rows.size)))])


def match(
    sent: pa.Table, arrived: pa.Table, hosts: Mapping[str, str], captured: Collection[str] | Receivers
) -> pa.Table:
    """Join all rows of MESSAGES seen leaving and seen coming into rows of TRANSFERS, in no order.

    hosts: address -> host. captured: the hosts whose captures were read, so that what is not in `arrived`
    did not come.
    """
    receivers = captured if isinstance(captured, Receivers) else Receivers(frozenset(captured))
    return Matcher(Reach.of(sent), Reach.of(arrived), hosts, receivers).take(sent, arrived)
